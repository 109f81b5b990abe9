"""`headway doctor dist`: facts of nodes written down and compared, as people type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import run


def call(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = 0
    try:
        run("headway", ["doctor", "dist", *map(str, words)])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(64))
    return folder


def collect(capfd: pytest.CaptureFixture[str], model: Path, node: int, target: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Path:
    """Facts of a node as the command writes them, with `changes` as if it were another machine."""
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "RANK": str(node), "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    code, out, err = call(capfd, "--collect", target, "--", model, "-tp", "2")
    assert code == 0, err
    assert f"node {node} (" in out
    assert "WORLD_SIZE counts nodes" in err
    facts = json.loads(target.read_text())
    target.write_text(json.dumps({**facts, "shm_bytes": 1 << 30, **changes}))
    return target


def test_nodes_that_agree(capfd: pytest.CaptureFixture[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [collect(capfd, model, node, tmp_path / f"{node}.json", monkeypatch) for node in (0, 1)]
    code, out, _ = call(capfd, "--nodes", ",".join(map(str, files)), "--lang", "en")
    assert code == 0, out
    assert "Nothing wrong was found" in out
    assert "--tensor-parallel-size" in out


def test_differences_in_both_languages_and_as_json(capfd: pytest.CaptureFixture[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = collect(capfd, model, 0, tmp_path / "0.json", monkeypatch)
    (model / "tokenizer.json").write_text("[]")
    second = collect(capfd, model, 1, tmp_path / "1.json", monkeypatch, host="other", boot="other", versions={"python": "3.11.7", "torch": "2.9.1"}, cpus=999)
    code, out, _ = call(capfd, "--nodes", first, "--nodes", second, "--lang", "en")
    assert code == 1
    assert "node 1 (other): 2.9.1" in " ".join(out.split())
    code, out, _ = call(capfd, "--nodes", f"{first},{second}", "--lang", "zh")
    assert code == 1
    assert "的版本不同：node0" in "".join(out.split())
    code, out, _ = call(capfd, "--nodes", f"{first},{second}", "--json", "--lang", "en")
    assert code == 1
    told = json.loads(out)
    assert [node["node"] for node in told["nodes"]] == [0, 1]
    reasons = {one["reason"]: one for one in told["differences"]}
    assert {"version_differs", "model_differs", "cpus_differ", "loopback_between_hosts"} <= set(reasons)
    assert reasons["model_differs"]["subject"] == "tokenizer.json"
    assert told["findings"][0]["rule"] == "D21"


def test_what_is_no_comparison(capfd: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    assert call(capfd)[0] == 2
    one = tmp_path / "one.json"
    code, _, err = call(capfd, "--nodes", one)
    assert (code, "at least two" in err) == (2, True)
    code, _, err = call(capfd, "--nodes", f"{one},{one}")
    assert (code, "cannot be read" in err) == (2, True)
    one.write_text("{}")
    code, _, err = call(capfd, "--nodes", f"{one},{one}")
    assert (code, "holds no facts of a node" in err) == (2, True)
