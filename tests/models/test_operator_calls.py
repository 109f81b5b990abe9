"""How many torch operators one token costs: at batch 1 a call takes longer than its arithmetic on a small model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from tests.kernels.counted_calls import CountedCalls
from tests.models.runs import Session
from tests.models.tiny_models import CONFIGS, TinyModel
from tests.models.tiny_sizes import SERVED

# In bfloat16, a whole decode step (3 layers; 4 in gemma2 and qwen3_moe, 6 in gemma3), as it is. Fewer is progress: lower the number.
CALLS = {
    "llama": 162, "smollm": 162, "mistral": 162, "qwen2": 169, "qwen3": 175, "gemma2": 239, "gemma3": 353, "phi3": 167,
    "granite": 176, "olmo2": 193, "mixtral": 267, "qwen3_moe": 396, "starcoder2": 128, "stablelm": 143, "gpt_neox": 131, "gpt2": 111,
    "falcon_7b": 125, "falcon_40b": 128,
}  # fmt: skip


def test_every_family_is_counted() -> None:
    assert set(CALLS) == set(CONFIGS)


@pytest.mark.parametrize("name", list(CALLS))
def test_a_decode_step(tiny: Callable[[str], TinyModel], name: str) -> None:
    model = load_model(inspect(str(tiny(name).folder)), torch.bfloat16, context_length=SERVED)
    session = Session(model, [60])
    text = list(range(3, 54))
    session.step((0, text[:50], 50))
    with CountedCalls() as counted:
        session.step((0, text, 1))
    assert counted.calls.total() <= CALLS[name]
