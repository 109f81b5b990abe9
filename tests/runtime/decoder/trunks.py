"""Trunks on tiny seeded models, and rows for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headway.artifacts.inspect import inspect
from headway.models.load import load_model
from headway.runtime.decoder.trunk import DecoderTrunk
from headway.runtime.decoder.wanted import HiddenAt, LabelLogits
from headway.runtime.row import Row
from tests.models.tiny_models import TinyModel, tiny_model

LABELS = (7, 3, 150)


@cache
def model_of(name: str, root: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The model as Headway runs it, in this process once."""
    return load_model(inspect(str(tiny_model(name, root).folder)), dtype)


def trunk_on(model: Any, *, share: bool = True, cache_tokens: int = 1024, step_tokens: int = 2048) -> DecoderTrunk:
    return DecoderTrunk(model, max_tokens=400, cache_tokens=cache_tokens, share=share, step_tokens=step_tokens)


def tokens(seed: int, length: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(3, 160, length).tolist())


def label_row(token_ids: tuple[int, ...]) -> Row:
    return Row(token_ids, "labels", LabelLogits(LABELS))


def hidden_row(token_ids: tuple[int, ...], *positions: int) -> Row:
    return Row(token_ids, "hidden", HiddenAt(positions or (len(token_ids) - 1,)))


def expected_labels(oracle: TinyModel, token_ids: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """By transformers: label logits, logarithm of the sum over the vocabulary, the largest logit."""
    logits = oracle.logits(list(token_ids))[-1].double().numpy()
    total = logits.max() + np.log(np.exp(logits - logits.max()).sum())
    return np.array([*logits[list(LABELS)], total, logits.max()])


def expected_hidden(oracle: TinyModel, token_ids: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """By transformers: the last hidden state of every position, final norm applied."""
    with torch.no_grad():
        found = oracle.oracle.model(torch.tensor([token_ids]), use_cache=False).last_hidden_state[0]
    return np.asarray(found.numpy(), dtype=np.float32)
