"""What only a GPU can show: captured decode steps, half precision, and an engine on the device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.kernels.interface import Kernels
from headway.kernels.torch_backend import TORCH
from headway.models.graphed_forward import GraphedForward
from headway.models.recorded_forward import StepLimits
from tests.models.runs import Session, difference, tokens
from tests.models.tiny_models import TinyModel
from tests.models.triton.test_models import loaded

Tiny = Callable[[str], TinyModel]
LENGTH = 40

pytestmark = pytest.mark.gpu


def run(session: Session, texts: list[list[int]]) -> list[torch.Tensor]:
    """Prefills of half of each text, then decodes of all, the shorter ones leaving first."""
    found = [[logits] for logits in session.step(*[(i, text[: len(text) // 2], len(text) // 2) for i, text in enumerate(texts)])]
    for step in range(max(map(len, texts)) // 2):
        chunks = [(i, text[: len(text) // 2 + step + 1], 1) for i, text in enumerate(texts) if len(text) // 2 + step < len(text)]
        for (i, _, _), logits in zip(chunks, session.step(*chunks), strict=True):
            found[i].append(logits)
    return [torch.cat(rows) for rows in found]


@pytest.mark.parametrize("name", ["smollm", "gemma2", "falcon_rw", "qwen2"])
def test_captured_steps_equal_transformers(tiny: Tiny, cuda_kernels: Kernels, name: str) -> None:
    model, texts = loaded(tiny(name), cuda_kernels), [tokens(seed, LENGTH - 6 * seed) for seed in range(5)]
    session = Session(model, [len(text) for text in texts])
    session.forward = model.prepared(session.kv, StepLimits(tokens=5 * LENGTH, sequences=5, positions=LENGTH))
    assert isinstance(session.forward, GraphedForward)
    for logits, text in zip(run(session, texts), texts, strict=True):
        assert difference(logits, tiny(name).logits(text)) <= 1e-3


def test_bfloat16_agrees_with_the_cpu(tiny: Tiny, cuda_kernels: Kernels) -> None:
    """Both round to bfloat16, at places that differ: logits of order 1 agree to some steps of its mantissa."""
    texts = [tokens(1, LENGTH)]
    found, wanted = (
        run(Session(loaded(tiny("smollm"), kernels, torch.bfloat16), [LENGTH]), texts)[0] for kernels in (cuda_kernels, TORCH)
    )
    assert difference(found, wanted) <= 0.1 * float(wanted.abs().max())
    assert (found.argmax(-1) == wanted.argmax(-1)).float().mean() >= 0.9
