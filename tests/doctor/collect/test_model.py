"""A model on disk and what is wrong with its files; a name that is not on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from headway.doctor.collect.model import model_on_disk, model_part

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 32, "vocab_size": 64, "max_position_embeddings": 128,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIG))
    save_file({"model.embed_tokens.weight": np.zeros((64, 16), np.float32)}, model / "model.safetensors")
    return model


def weights(part: dict[str, object]) -> dict[str, object]:
    files = part["files"]
    assert isinstance(files, list)
    return next(dict(file) for file in files if file["name"] == "model.safetensors")


def test_a_folder(folder: Path) -> None:
    part = model_part(str(folder))
    assert part["path"] == str(folder)
    assert part["config"]["hidden_size"] == 16
    assert part["dtype"] == "F32"
    assert part["tensors"] == [{"name": "model.embed_tokens.weight", "dtype": "F32", "shape": [64, 16]}]
    file = weights(part)
    assert file["bytes"] == file["expected_bytes"] == (folder / "model.safetensors").stat().st_size


def test_a_truncated_file_says_what_it_should_have(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-100])
    file = weights(model_part(str(folder)))
    assert (file["bytes"], file["expected_bytes"]) == (whole - 100, whole)


def test_a_pointer_instead_of_weights_shows_its_head(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    part = model_part(str(folder))
    assert str(weights(part)["head"]).startswith("version https:/")
    assert "expected_bytes" not in weights(part)
    assert part["problem"]


@pytest.mark.parametrize("header", [b"\xff" * 8, (50).to_bytes(8, "little") + b"[" * 50, (2).to_bytes(8, "little") + b"7 ", b""])
def test_odd_headers(folder: Path, header: bytes) -> None:
    (folder / "model.safetensors").write_bytes(header)
    assert "expected_bytes" not in weights(model_part(str(folder)))


def test_an_adapter(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 16}))
    save_file({"a.lora_A.weight": np.zeros((1, 1), np.float32)}, tmp_path / "adapter_model.safetensors")
    assert model_part(str(tmp_path))["adapter"] == {"peft_type": "LORA", "r": 16}


@pytest.mark.parametrize("text", ["{", "[]", "[" * 5000])
def test_a_config_that_is_none(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    part = model_part(str(folder))
    assert "config" not in part
    assert part["problem"]


def test_a_name_that_is_not_on_disk(tmp_path: Path) -> None:
    part = model_part("org/absent", tmp_path)
    assert part["id"] == "org/absent"
    assert "path" not in part
    assert "smollm2-135m-instruct" in part["cached"]


def test_a_short_name_that_was_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = model_on_disk("smollm2-135m-instruct")
    assert found is None or found.exists()
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    assert model_on_disk("smollm2-135m-instruct") is None
