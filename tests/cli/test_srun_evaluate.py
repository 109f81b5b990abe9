"""`vllm-srun evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.srun import vllm_srun
from headway.runtime.readers.sparrow.fixture import write_sparrow


def test_it_prints_and_keeps_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    write_sparrow(tmp_path / "model", "words", 1)
    done = CliRunner().invoke(vllm_srun, ["evaluate", str(tmp_path / "model"), "--threads", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert set(found["types"]) == {"choice", "noul"}
    kept = json.loads(Path(found["path"]).read_text())
    assert kept["model_sha256"] == found["model_sha256"]
    assert kept["types"]["choice"]["asked"] == 96
    assert kept["readout"]["family"] == "sparrow"
