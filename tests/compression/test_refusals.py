"""What cannot be compressed says so before anything is written."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from headway.compression import disk_space, run
from headway.compression.group_size import group_size
from headway.errors import ConfigError, HeadwayError, NotBuiltError
from tests.compression.tiny_runs import compressed
from tests.engine.tiny_folder import complete_tiny_model


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


def refused(source: Path, method: str, output: Path, **more: Any) -> HeadwayError:
    with pytest.raises(HeadwayError) as found:
        compressed(source, method, output, **more)
    assert not output.exists()
    assert found.value.fix is not None or found.value.reason == "unsupported_architecture"
    return found.value


def test_what_is_quantized_already(root: Path, tmp_path: Path) -> None:
    compressed(complete_tiny_model("smollm", root).folder, "int8", tmp_path / "once")
    error = refused(tmp_path / "once", "gptq", tmp_path / "twice")
    assert error.reason == "already_quantized"
    assert "compressed-tensors" in error.message


def test_matrices_that_lie_transposed(root: Path, tmp_path: Path) -> None:
    error = refused(complete_tiny_model("gpt2", root).folder, "int8", tmp_path / "out")
    assert isinstance(error, NotBuiltError)
    assert "transposed" in error.message


def test_architectures_that_run_through_transformers(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(complete_tiny_model("smollm", root).folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["OlmoeForCausalLM"], "model_type": "olmoe"}))
    error = refused(folder, "int8", tmp_path / "out")
    assert error.reason == "unsupported_architecture"
    assert "LlamaForCausalLM" in error.message


def test_an_output_that_is_there(root: Path, tmp_path: Path) -> None:
    source = complete_tiny_model("smollm", root).folder
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError) as found:
        compressed(source, "int8", tmp_path / "out")
    assert found.value.reason == "output_exists"
    (tmp_path / "other.part").mkdir()
    (tmp_path / "other.part" / "mine").write_text("keep")
    error = refused(source, "int8", tmp_path / "other")
    assert error.reason == "output_exists"
    assert (tmp_path / "other.part" / "mine").read_text() == "keep"


def test_a_folder_that_cannot_be_made(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = refused(complete_tiny_model("smollm", root).folder, "int8", tmp_path / "file" / "out", calibration=tmp_path / "file")
    assert error.reason == "output_unwritable"


def test_too_little_room(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda path: usage(10**9, 0, 150_000))
    error = refused(complete_tiny_model("smollm", root).folder, "gptq", tmp_path / "out")
    assert error.reason == "disk_full"
    assert "0 MB are free" in error.message
    assert not (tmp_path / "out.part").exists()


def test_a_disk_that_fills_up_keeps_what_is_finished(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, write = complete_tiny_model("smollm", root).folder, run.write_tensors

    def full(path: Path, tensors: Any) -> int:
        if path.name.startswith("model-00002"):
            raise OSError(28, "No space left on device", str(path))
        return write(path, tensors)

    with monkeypatch.context() as patched:
        patched.setattr(run, "write_tensors", full)
        assert refused(source, "gptq", tmp_path / "out").reason == "disk_full"
    assert compressed(source, "gptq", tmp_path / "out").resumed_at == 1


@pytest.mark.parametrize(("widths", "size"), [([576, 1536], 64), ([4096, 11008], 128), ([128], 128), ([96, 64], 32)])
def test_the_largest_group_that_fits(widths: list[int], size: int) -> None:
    assert group_size(widths, None) == size


def test_groups_that_do_not_fit(root: Path, tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match="do not divide the 576 inputs"):
        group_size([576, 1536], 128)
    error = refused(complete_tiny_model("smollm", root).folder, "awq", tmp_path / "out", group=64)
    assert error.reason == "group_size"
    with pytest.raises(NotBuiltError, match="int8 or fp8"):
        group_size([48], None)


def test_notes_say_what_was_not_as_asked(root: Path, tmp_path: Path) -> None:
    report = compressed(complete_tiny_model("smollm", root).folder, "gptq", tmp_path / "out", samples=2000, length=8192, calibration=_long_text(tmp_path))
    assert report.notes[0].startswith("groups of 32 inputs")
    assert report.notes[1] == "samples of 256 tokens: the model reads no more"
    assert "2000 were asked for" in report.notes[2]
    assert report.dtype == str(torch.float32).removeprefix("torch.")


def _long_text(folder: Path) -> Path:
    (folder / "long.txt").write_text("abcdefghij " * 300)
    return folder / "long.txt"
