"""Decoders on native kernels beside the same on torch's: greedy equality in float32, closeness in bfloat16, on every instruction set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import native_library
from headway.kernels.torch_backend import TORCH
from headway.models.load import load_model
from tests.models.runs import Session, difference, greedy, tokens
from tests.models.tiny_models import CONFIGS, TinyModel
from tests.models.tiny_sizes import SERVED

pytestmark = pytest.mark.skipif(not native_library().sets, reason=native_library().missing or "")
PROMPT, COUNT = 21, 12


@pytest.mark.parametrize("name", list(CONFIGS))
def test_float32_says_what_torch_says(tiny: Callable[[str], TinyModel], name: str) -> None:
    """Logits within 2e-4: sums run in other orders, and random weights amplify that layer by layer."""
    card, text = inspect(str(tiny(name).folder)), tokens(3, PROMPT)
    theirs = load_model(card, torch.float32, context_length=SERVED, kernels=TORCH)
    want, said = Session(theirs, [PROMPT]).step((0, text, PROMPT))[0], greedy(theirs, text, COUNT, 0)
    for number, instruction_set in enumerate(native_library().sets):
        ours = load_model(card, torch.float32, context_length=SERVED, kernels=native_kernels(instruction_set, 1 + number % 2))
        assert difference(Session(ours, [PROMPT]).step((0, text, PROMPT))[0], want) <= 2e-4
        assert greedy(ours, text, COUNT, 0) == said


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2", "olmo2"])
def test_bfloat16_is_as_close_to_float32_as_torch_is(tiny: Callable[[str], TinyModel], name: str) -> None:
    card, text = inspect(str(tiny(name).folder)), tokens(4, PROMPT)

    def logits(dtype: torch.dtype, instruction_set: str | None) -> torch.Tensor:
        kernels = TORCH if instruction_set is None else native_kernels(instruction_set, 1)
        return Session(load_model(card, dtype, context_length=SERVED, kernels=kernels), [PROMPT]).step((0, text, PROMPT))[0]

    exact = logits(torch.float32, None)
    allowed = 1.5 * float((logits(torch.bfloat16, None) - exact).square().mean().sqrt())
    for instruction_set in native_library().sets:
        assert float((logits(torch.bfloat16, instruction_set) - exact).square().mean().sqrt()) <= allowed
