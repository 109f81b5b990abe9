"""Pieces of a group's score matrix that are computed at once: a stretch of queries, the keys they can see, and a mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

# Measured at 512 and 2,048 queries (bf16, 9/3 heads of 64): 64 to 256 queries at once are equally fast and skip most of
# the keys that causality hides; 512 are 1.5 to 2 times slower.
_MOST_QUERIES: Final = 128
_LEAST_QUERIES: Final = 16
_SCORE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """R rows of `width` queries over `length` gathered keys, all positions relative to a row's first gathered key.

    Query j of row r is at starts[r] + j; positions from ends[r] on do not exist (padding).
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    width: int
    length: int
    window: int | None


@dataclass(frozen=True, slots=True)
class Tile:
    """Queries [queries.start, queries.stop) of every row against gathered keys [keys.start, keys.stop).

    `mask` [R, 1, queries, columns] is added to the scores from column `masked_from` of the tile on; None: all visible.
    """

    queries: slice
    keys: slice
    masked_from: int
    mask: torch.Tensor | None


def make_tiles(span: Span, num_heads: int, dtype: torch.dtype) -> tuple[Tile, ...]:
    """Cover all queries of the span. Every query sees at least one key, so no softmax is over nothing."""
    query_bytes = len(span.starts) * num_heads * span.length * dtype.itemsize
    size = min(_MOST_QUERIES, max(_LEAST_QUERIES, _SCORE_BYTES // query_bytes))
    return tuple(_tile(span, a, min(a + size, span.width), dtype) for a in range(0, span.width, size))


def _tile(span: Span, begin: int, end: int, dtype: torch.dtype) -> Tile:
    # Padded queries repeat the last real one: their results are dropped, but they must not be NaN.
    positions = np.minimum(span.starts[:, None] + np.arange(begin, end), span.ends[:, None] - 1)
    lowest, highest = int(positions[:, 0].min()), int(positions[:, -1].max())
    keys = slice(0 if span.window is None else max(0, lowest - span.window + 1), highest + 1)
    if 4 * (keys.stop - keys.start) >= 3 * span.length:
        # A part of the gathered keys is not contiguous, and the matmul would copy it first.
        keys = slice(0, span.length)
    cut_below = span.window is not None and highest - span.window + 1 > keys.start
    masked_from = keys.start if cut_below else lowest + 1
    if masked_from >= keys.stop:
        return Tile(slice(begin, end), keys, 0, None)
    columns = np.arange(masked_from, keys.stop)
    hidden = columns > positions[..., None]
    if cut_below and span.window is not None:
        hidden |= columns <= positions[..., None] - span.window
    mask = torch.zeros((), dtype=dtype).masked_fill(torch.from_numpy(hidden), float("-inf"))
    return Tile(slice(begin, end), keys, masked_from - keys.start, mask[:, None])
