"""Models that transformers runs with our attention in it: logits equal to transformers alone, in every shape of batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.kernels.reference import REFERENCE
from headway.models.causal_lm import CausalLM
from headway.models.fallback.model import FallbackModel
from headway.models.load import load_model
from tests.models.fallback_models import CONFIGS, fallback_model
from tests.models.runs import LENGTH, difference, greedy, in_chunks, mixed_batches, tokens
from tests.models.tiny_models import TinyModel

NAMES = list(CONFIGS)


@pytest.fixture(scope="module")
def fallback(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TinyModel]:
    root: Path = tmp_path_factory.mktemp("fallback")
    return lambda name: fallback_model(name, root)


def load(model: TinyModel, dtype: torch.dtype = torch.float32) -> CausalLM:
    return load_model(inspect(str(model.folder)), dtype)


@pytest.mark.parametrize("name", NAMES)
def test_logits_as_full_prefill_in_chunks_and_token_by_token(fallback: Callable[[str], TinyModel], name: str) -> None:
    model = fallback(name)
    loaded = load(model)
    assert isinstance(loaded, FallbackModel)
    expected = model.logits(tokens(0))
    assert expected.std() > 0.3  # flat logits would prove nothing
    for size in (LENGTH, 7, 1):
        assert difference(in_chunks(loaded, tokens(0), size), expected) <= 2e-4


@pytest.mark.parametrize("name", NAMES)
def test_mixed_batches_of_prefill_chunks_and_decodes(fallback: Callable[[str], TinyModel], name: str) -> None:
    model = fallback(name)
    assert mixed_batches(load(model), model.logits) <= 2e-4


@pytest.mark.parametrize("name", ["gemma", "cohere2", "deepseek3"])
def test_greedy_tokens_and_the_reference_kernels(fallback: Callable[[str], TinyModel], name: str) -> None:
    model = fallback(name)
    text = tokens(9, 50)
    loaded = load_model(inspect(str(model.folder)), torch.float32, kernels=REFERENCE)
    assert greedy(loaded, text, 40, never=2) == model.greedy(text, 40)


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_stays_near_float32(fallback: Callable[[str], TinyModel], name: str) -> None:
    model = fallback(name)
    rounded = in_chunks(load(model, torch.bfloat16), tokens(0), 50)
    likeness = torch.nn.functional.cosine_similarity(rounded, model.logits(tokens(0)), dim=-1)
    assert likeness.median() > 0.99


def test_native_models_compute_the_same_through_the_fallback(tiny: Callable[[str], TinyModel]) -> None:
    for name in ("llama", "gemma2", "mixtral", "gpt_neox"):
        card = inspect(str(tiny(name).folder))
        ours = load_model(card, torch.float32, context_length=LENGTH)
        theirs = load_model(card, torch.float32, context_length=LENGTH, implementation="transformers")
        assert isinstance(theirs, FallbackModel)
        assert not isinstance(ours, FallbackModel)
        assert difference(in_chunks(theirs, tokens(0), 13), in_chunks(ours, tokens(0), 13)) <= 2e-4


def test_only_wanted_rows_come_back_and_none_are_fine(fallback: Callable[[str], TinyModel]) -> None:
    loaded = load(fallback("cohere2"))
    assert loaded.logits(torch.empty(0, 64)).shape == (0, 160)
