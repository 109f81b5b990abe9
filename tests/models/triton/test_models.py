"""Whole models on Triton's kernels against transformers: prefills, chunks and decodes of several sequences in the same batches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.load import load_model
from tests.models.runs import Session, difference, tokens
from tests.models.tiny_models import CONFIGS, TinyModel
from tests.models.tiny_sizes import SERVED

Tiny = Callable[[str], TinyModel]


def loaded(tiny: TinyModel, kernels: Kernels, dtype: torch.dtype = torch.float32) -> CausalLM:
    return load_model(inspect(str(tiny.folder)), dtype, context_length=SERVED, kernels=kernels)


def mixture(session: Session, texts: list[list[int]], sizes: list[tuple[int, int]]) -> list[torch.Tensor]:
    """Steps of two sequences, so many new tokens of each -> logits of all positions of both."""
    done, found = [0, 0], [[], []]  # type: ignore[var-annotated]
    for counts in sizes:
        chunks = [(i, texts[i][: done[i] + new], new) for i, new in enumerate(counts) if new]
        for (i, _, new), logits in zip(chunks, session.step(*chunks), strict=True):
            found[i].append(logits)
            done[i] += new
    return [torch.cat(rows) for rows in found]


def test_a_mixture_equals_transformers(one_layer: TinyModel, kernels: Kernels) -> None:
    texts = [tokens(seed, 3) for seed in range(2)]
    session = Session(loaded(one_layer, kernels), [3, 3])
    found = mixture(session, texts, [(2, 0), (1, 2), (0, 1)])
    assert session.kv.layers[0].device == kernels.device
    assert all(difference(logits, one_layer.logits(text)) <= 1e-4 for logits, text in zip(found, texts, strict=True))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*CONFIGS, "falcon_rw"])
def test_every_family_beyond_its_window(tiny: Tiny, kernels: Kernels, name: str) -> None:
    """Soft caps, windows, norms before and after, of heads, of rows, LayerNorm, ALiBi, learned positions, experts."""
    texts = [tokens(seed, 24) for seed in range(2)]
    found = mixture(Session(loaded(tiny(name), kernels), [24, 24]), texts, [(20, 0), (1, 9), (1, 1), (2, 14)])
    assert all(difference(logits, tiny(name).logits(text)) <= 2e-4 for logits, text in zip(found, texts, strict=True))
