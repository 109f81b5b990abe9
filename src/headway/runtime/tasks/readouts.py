"""Readouts: hidden states of packed rows -> one float32 array for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from headway.runtime.tasks.head import Head

FloatArray: TypeAlias = npt.NDArray[np.float32]
Range: TypeAlias = tuple[int, int]
Readout: TypeAlias = Callable[[torch.Tensor, Sequence[Range]], list[FloatArray]]
"""hidden [T, hidden], the ranges of the rows that are read -> one array for each of them."""
Pooling: TypeAlias = Literal["cls", "mean", "lasttoken"]


def pool(hidden: torch.Tensor, ranges: Sequence[Range], pooling: Pooling) -> torch.Tensor:
    """hidden [T, n] -> [rows, n] float32: the first token, the mean of all tokens, or the last token."""
    if pooling == "mean":
        return torch.stack([hidden[start:end].float().mean(0) for start, end in ranges])
    places = [start if pooling == "cls" else end - 1 for start, end in ranges]
    return hidden[torch.tensor(places)].float()


def pooled_readout(pooling: Pooling) -> Readout:
    """-> [hidden], not normalized: one forward pass serves every dimension."""

    def read(hidden: torch.Tensor, ranges: Sequence[Range]) -> list[FloatArray]:
        return list(pool(hidden, ranges, pooling).numpy())

    return read


def logits_readout(head: Head, pooling: Pooling, columns: int | None = None) -> Readout:
    """-> [labels]. The head sees the first `columns` of the pooled state."""

    def read(hidden: torch.Tensor, ranges: Sequence[Range]) -> list[FloatArray]:
        return list(head(pool(hidden, ranges, pooling)[:, :columns]).numpy())

    return read


def token_readout(head: Head) -> Readout:
    """-> [tokens of the row, labels]."""

    def read(hidden: torch.Tensor, ranges: Sequence[Range]) -> list[FloatArray]:
        rows = torch.cat([hidden[start:end] for start, end in ranges]) if len(ranges) > 1 else hidden[slice(*ranges[0])]
        return [part.numpy() for part in torch.split(head(rows), [end - start for start, end in ranges])]

    return read
