"""`headway quantize` as people call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headway.cli.quantize import quantize_command
from headway.errors import ConfigError
from tests.compression.tiny_runs import write_texts
from tests.engine.tiny_folder import complete_tiny_model


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    return complete_tiny_model("smollm", tmp_path).folder


def run(*words: str) -> Result:
    return CliRunner().invoke(quantize_command, words, catch_exceptions=False)


def test_the_report(source: Path) -> None:
    done = run(str(source), "--method", "int8")
    assert done.exit_code == 0
    assert "headway serve smollm-int8" in done.stdout
    assert f"headway eval smollm-int8 --against {source}" in done.stdout
    assert "attention.qkv" in done.stdout
    assert (source.parent / "smollm-int8" / "config.json").exists()


def test_as_json(source: Path, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.txt")
    words = ("--method", "awq", "--calibration", str(texts), "--samples", "8", "--max-length", "32", "--group-size", "32", "--dtype", "bfloat16", "--output", "o")
    found: dict[str, Any] = json.loads(run(str(source), *words, "--json").stdout)
    assert found["calibration"] == {"source": str(texts), "samples": 8, "tokens": 256}
    assert found["dtype"] == "bfloat16"
    assert found["group_size"] == 32
    assert found["bytes_after"] == sum(file.stat().st_size for file in Path("o").glob("*.safetensors"))
    assert 4.6 < found["matrix_bits"] < 5.0  # 4, a scale of 16 and a zero point of 4 for each 32, and the shape of each small matrix
    assert found["bytes_dense"] * 2 == found["bytes_before"]
    assert {each["module"] for each in found["layers"] if each["layer"] == 1} == {
        "layers.1.attention.qkv", "layers.1.attention.output.projection", "layers.1.mlp.gate_up", "layers.1.mlp.down.projection",
    }  # fmt: skip
    assert all(0 <= each["exponent"] < 1 for each in found["layers"])


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--method", "int8", "--calibration", "x.txt"), "--method int8 needs no texts"), (("--method", "fp8", "--group-size", "64"), "one scale for each output")],
)
def test_flags_that_do_not_belong_together(source: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(str(source), *words)


def test_an_error_as_json(source: Path) -> None:
    Path("o").mkdir()
    done = CliRunner().invoke(quantize_command, [str(source), "--method", "int8", "--output", "o", "--json"])
    assert json.loads(done.stdout)["error"]["reason"] == "output_exists"
    assert done.exit_code != 0


def test_a_method_that_is_none(source: Path) -> None:
    done = CliRunner().invoke(quantize_command, [str(source), "--method", "int3"])
    assert done.exit_code == 2
    assert "int4-g128" in done.stderr
