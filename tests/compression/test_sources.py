"""GGUF files and stacked experts by the names of Hugging Face checkpoints: the same tensors as transformers saved."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.artifacts.inspect import inspect
from headway.compression.dense_source import DenseSource
from headway.compression.quantizable import planned
from headway.quantization.weight_reader import WeightReader
from tests.models.tiny_gguf import ARCHITECTURES, write_gguf
from tests.models.tiny_models import tiny_model


def tensors_of(reference: Path) -> dict[str, torch.Tensor]:
    plan = planned(inspect(str(reference)))
    with WeightReader(plan.card) as reader:
        source = DenseSource(plan, reader)
        return {name: tensor for stack in source.stacks for name, tensor in source.as_written(stack, source.stack(stack)).items()}


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_gguf(name: str, tmp_path: Path) -> None:
    model = tiny_model(name, tmp_path)
    write_gguf(model, tmp_path / "m.gguf")
    found, expected = tensors_of(tmp_path / "m.gguf"), load_file(model.folder / "model.safetensors")
    if model.oracle.config.tie_word_embeddings:
        expected.pop("lm_head.weight", None)
    assert found.keys() == expected.keys()
    for tensor_name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[tensor_name], rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize("name", ["falcon_40b", "gpt_neox", "gemma3", "mixtral", "phi3"])
def test_safetensors(name: str, tmp_path: Path) -> None:
    """What is undone while reading is done again for writing."""
    model = tiny_model(name, tmp_path)
    found, expected = tensors_of(model.folder), load_file(model.folder / "model.safetensors")
    for tensor_name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[tensor_name], rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize(("name", "block", "parts"), [("mixtral", "block_sparse_moe", ("w1", "w3", "w2")), ("qwen3_moe", "mlp", ("gate_proj", "up_proj", "down_proj"))])
def test_experts_in_one_tensor_are_written_one_by_one(name: str, block: str, parts: tuple[str, str, str], tmp_path: Path) -> None:
    """As a state dict of transformers 5 holds them; engines read one matrix for each expert."""
    model = tiny_model(name, tmp_path)
    save_file({key: tensor.clone() for key, tensor in model.oracle.state_dict().items()}, model.folder / "model.safetensors", {"format": "pt"})
    found, state = tensors_of(model.folder), model.oracle.state_dict()
    gate, up = state["model.layers.1.mlp.experts.gate_up_proj"][2].chunk(2)
    for part, expected in zip(parts, (gate, up, state["model.layers.1.mlp.experts.down_proj"][2]), strict=True):
        assert torch.equal(found[f"model.layers.1.{block}.experts.2.{part}.weight"], expected)
    assert torch.equal(found[f"model.layers.1.{block}.gate.weight"], state["model.layers.1.mlp.gate.weight"])
