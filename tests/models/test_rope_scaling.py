"""Whole models with every rope scaling against transformers, in both spellings, below and above the original context.

Where transformers chooses frequencies by the length of the text (dynamic, longrope), a deployment has those of the
longest text that it serves. The oracle therefore always reads a text of that length; shorter texts are compared with its
beginning, which, attention being causal, is what the shorter text would have got.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Phi3Config

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.errors import NotBuiltError
from headway.models.load import load_model
from tests.models.runs import in_chunks
from tests.models.tiny_models import randomize
from tests.models.tiny_sizes import ORIGINAL_CONTEXT, SIZES

TRAINED, THETA = 64, 1e4
FAMILIES: dict[str, Any] = {"llama": LlamaConfig, "phi3": Phi3Config}
DIVISORS = {"short_factor": [1.0 + i / 4 for i in range(8)], "long_factor": [2.0 + i for i in range(8)]}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 3.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": ORIGINAL_CONTEXT},
    "yarn": {"factor": 2.0, "original_max_position_embeddings": ORIGINAL_CONTEXT},
    "longrope": {**DIVISORS, "original_max_position_embeddings": ORIGINAL_CONTEXT},
    "su": {**DIVISORS, "original_max_position_embeddings": ORIGINAL_CONTEXT},
}  # fmt: skip
# Lengths that are served: within the original context, within max_position_embeddings, beyond it.
SERVED = (ORIGINAL_CONTEXT, TRAINED, 100)
CASES = [("llama", kind) for kind in SETTINGS if kind != "su"] + [("phi3", kind) for kind in ("default", "longrope", "su")]


def spelled(kind: str, version: int) -> dict[str, Any]:
    if version == 4:
        return {"rope_theta": THETA, "rope_scaling": {"type": kind, **SETTINGS[kind]} if kind != "default" else None}
    return {"rope_parameters": {"rope_type": kind, "rope_theta": THETA, **SETTINGS[kind]}}


def config_of(family: str, rope: dict[str, Any]) -> dict[str, Any]:
    outside = {"original_max_position_embeddings": ORIGINAL_CONTEXT} if family == "phi3" else {}
    return {**SIZES, "max_position_embeddings": TRAINED, "num_hidden_layers": 2, **outside, **rope}


def tokens(length: int) -> list[int]:
    return torch.randint(3, 160, (length,), generator=torch.Generator().manual_seed(length)).tolist()


def made(family: str, config: dict[str, Any], folder: Path) -> tuple[Any, ModelCard]:
    """transformers' model, and a card of its weights whose config is spelled as given."""
    oracle = AutoModelForCausalLM.from_config(
        FAMILIES[family](**{**config, **{k: dict(v) for k, v in config.items() if isinstance(v, dict)}}),
        dtype=torch.float32, attn_implementation="eager",
    ).eval()  # fmt: skip
    randomize(oracle)
    oracle.save_pretrained(folder)
    return oracle, replace(inspect(str(folder)), config=config)


@pytest.mark.parametrize("served", SERVED)
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("family", "kind"), CASES)
def test_texts_up_to_the_length_that_is_served(family: str, kind: str, version: int, served: int, tmp_path: Path) -> None:
    oracle, card = made(family, config_of(family, spelled(kind, version)), tmp_path)
    text = tokens(served)
    with torch.no_grad():
        expected = oracle(torch.tensor([text]), use_cache=False).logits[0]
    model = load_model(card, torch.float32, context_length=served)
    for length in (served, served // 4):
        assert (in_chunks(model, text[:length], 30) - expected[:length]).abs().max() <= 1e-4


@pytest.mark.parametrize(("family", "kind"), [("llama", "dynamic"), ("llama", "longrope"), ("phi3", "longrope")])
def test_the_length_that_is_served_matters(family: str, kind: str, tmp_path: Path) -> None:
    _, card = made(family, config_of(family, spelled(kind, 5)), tmp_path)
    text = tokens(20)
    short, long = (in_chunks(load_model(card, torch.float32, context_length=n), text, 20) for n in (ORIGINAL_CONTEXT, 100))
    assert (short - long).abs().max() > 1e-2


def test_unknown_scalings_are_refused_with_the_list(tmp_path: Path) -> None:
    _, card = made("llama", config_of("llama", spelled("default", 5)), tmp_path)
    broken = replace(card, config=config_of("llama", {"rope_scaling": {"type": "proportional", "factor": 2.0}}))
    with pytest.raises(NotBuiltError, match=r"'proportional'.*linear, dynamic, llama3, yarn, longrope"):
        load_model(broken, torch.float32, implementation="vllm")
