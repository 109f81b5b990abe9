"""The input of one pass through an encoder: rows of different lengths, end to end, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """T tokens of S rows, row after row. `starts` [S + 1]: row s is tokens starts[s] to starts[s + 1]."""

    token_ids: torch.Tensor  # [T] int64
    positions: torch.Tensor  # [T] int64, from 0 within each row
    starts: npt.NDArray[np.int64]  # [S + 1]
    segments: torch.Tensor | None = None  # [T] int64: token type ids, None = all 0

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)


def pack(rows: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> PackedBatch:
    """Token ids of rows -> one batch."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    flat = [token for row in rows for token in row]
    positions = np.arange(len(flat), dtype=np.int64) - np.repeat(starts[:-1], lengths)
    return PackedBatch(
        torch.tensor(flat, dtype=torch.int64), torch.from_numpy(positions), starts,
        None if segments is None else torch.tensor([kind for row in segments for kind in row], dtype=torch.int64),
    )  # fmt: skip
