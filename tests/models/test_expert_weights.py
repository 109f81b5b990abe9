"""Where the weights of experts come from, in every spelling, and which layers have them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from headway.models.load import load_model
from headway.models.registry import architecture
from tests.models.runs import in_chunks
from tests.models.tiny_models import TinyModel
from tests.models.tiny_sizes import SERVED, SIZES

Tiny = Callable[[str], TinyModel]
FAMILIES = ["mixtral", "qwen3_moe"]


def stacked(model: TinyModel, folder: Path) -> Path:
    """The same model with one tensor for all experts of a layer, as transformers 5 has it in memory."""
    folder.mkdir()
    save_file({name: weight.clone() for name, weight in model.oracle.state_dict().items()}, folder / "model.safetensors")
    shutil.copy(model.folder / "config.json", folder)
    return folder


def test_published_names_are_one_tensor_for_each_expert(tiny: Tiny) -> None:
    """What transformers 5 saves is what the models were published as; the rest of the tests rest on that."""
    mixtral, qwen = (load_file(tiny(name).folder / "model.safetensors") for name in FAMILIES)
    assert mixtral["model.layers.0.block_sparse_moe.experts.5.w1.weight"].shape == (96, 64)
    assert qwen["model.layers.0.mlp.experts.7.gate_proj.weight"].shape == (48, 64)


@pytest.mark.parametrize("name", FAMILIES)
def test_stacked_experts(tiny: Tiny, name: str, tmp_path: Path) -> None:
    model = tiny(name)
    card = inspect(str(stacked(model, tmp_path / "stacked")))
    assert "model.layers.0.mlp.experts.gate_up_proj" in card.tensors
    seen: list[tuple[int, int]] = []
    loaded = load_model(
        card, torch.float32, context_length=SERVED, progress=lambda done, total: seen.append((done, total))
    )
    text = list(range(3, 80))
    assert (in_chunks(loaded, text, 40) - model.logits(text)).abs().max() <= 1e-4
    assert seen[-1][0] == seen[-1][1] == card.weight_bytes


@pytest.mark.parametrize("name", FAMILIES)
def test_a_missing_expert_is_named(tiny: Tiny, name: str) -> None:
    card = inspect(str(tiny(name).folder))
    lost = next(tensor for tensor in card.tensors if ".experts.4." in tensor)
    rest = {tensor: info for tensor, info in card.tensors.items() if tensor != lost}
    with pytest.raises(ArtifactError, match=lost):
        load_model(replace(card, tensors=rest), torch.float32)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"decoder_sparse_step": 2}, {"decoder_sparse_step": 3, "mlp_only_layers": [5]},
        {"mlp_only_layers": [0, 1]}, {"decoder_sparse_step": 8},
    ],
)  # fmt: skip
def test_the_layers_that_transformers_makes_sparse(settings: dict[str, Any]) -> None:
    config = Qwen3MoeConfig(**SIZES, num_hidden_layers=6, num_experts=2, num_experts_per_tok=1, **settings)
    with torch.device("meta"):
        theirs = AutoModelForCausalLM.from_config(config)
    expected = tuple(hasattr(layer.mlp, "experts") for layer in theirs.model.layers)
    ours = architecture("Qwen3MoeForCausalLM").configure(json.loads(config.to_json_string()), SERVED)
    assert ours.layer_sparse == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_experts", 0), ("num_experts", 1 << 20), ("num_experts_per_tok", 9), ("mlp_only_layers", [0.5]), ("decoder_sparse_step", 0)],
)  # fmt: skip
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    config = {**SIZES, "num_hidden_layers": 2, "num_experts": 8, field: value}
    with pytest.raises(ArtifactError) as caught:
        architecture("Qwen3MoeForCausalLM").configure(config, SERVED)
    assert caught.value.reason == "invalid_model_config"
    assert caught.value.param == field
