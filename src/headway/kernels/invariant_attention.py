"""Paged attention in tiles that lie at fixed positions of a sequence.

Positions are cut into tiles of `QUERIES`. A token is always computed in the row of its tile that its position names, against
the keys up to the end of the tile; rows that a step does not ask for are zeros. The shape of every product, and the
place of every number in it, thus follows from the token's own position: neither other sequences nor the cut of a prompt into
chunks nor a prefix found in the cache can change a bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV

# Of a decode's rows all but one are padding. Sixteen keep that small and still give a long prompt 16 queries at a time.
QUERIES: Final = 16


@dataclass(frozen=True, slots=True)
class PositionTile:
    """Queries `rows` of the batch stand in rows `place` of the tile and see the keys that `keys` names."""

    rows: slice
    place: slice
    keys: torch.Tensor  # [2 * K * length] rows of PagedKV.token_rows: keys, then values, head by head
    length: int
    mask: torch.Tensor  # [QUERIES, last columns], added to the scores


@dataclass(frozen=True, slots=True)
class PositionPlan:
    """`tiles` by window; `slot_rows` [T, 2K]: where keys and values go in PagedKV.token_rows."""

    slot_rows: torch.Tensor
    tiles: dict[int | None, tuple[PositionTile, ...]]


def plan(batch: ForwardBatch, kv: PagedKV, num_heads: int, windows: frozenset[int | None]) -> PositionPlan:
    halves = torch.arange(2 * kv.shape.num_kv_heads) * (kv.num_blocks * kv.block_size)
    return PositionPlan(batch.slots[:, None] + halves, {w: tuple(_tiles(batch, kv, halves, w)) for w in windows})


def store(rows: torch.Tensor, kv: PagedKV, layer: int, plan: PositionPlan) -> None:
    kv.token_rows[layer].index_put_((plan.slot_rows,), rows)


def attend(
    query: torch.Tensor, kv: PagedKV, layer: int, plan: PositionPlan, window: int | None, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    heads, size = query.shape[1:]
    kv_heads = kv.shape.num_kv_heads
    out = query.new_empty(query.shape[0], heads * size)
    for tile in plan.tiles[window]:
        full = query.new_zeros(QUERIES, heads, size)
        full[tile.place] = query[tile.rows]
        keys, values = kv.token_rows[layer].index_select(0, tile.keys).view(2, kv_heads, tile.length, size)
        grouped = full.transpose(0, 1).reshape(kv_heads, -1, size)
        scores = torch.baddbmm(query.new_empty(1, 1, 1), grouped, keys.transpose(1, 2), beta=0, alpha=scale)
        if softcap is not None:
            scores.div_(softcap).tanh_().mul_(softcap)
        if key_bias is not None:
            scores = (scores.view(heads, QUERIES, -1) + key_bias[:, None, : tile.length]).view(scores.shape)
        scores.view(heads, QUERIES, tile.length)[..., -tile.mask.shape[1] :].add_(tile.mask)
        mixed = torch.bmm(torch.softmax(scores, -1).to(values.dtype), values)
        out[tile.rows] = mixed.view(heads, QUERIES, size).transpose(0, 1)[tile.place].flatten(1)
    return out


def _tiles(batch: ForwardBatch, kv: PagedKV, halves: torch.Tensor, window: int | None) -> list[PositionTile]:
    tiles = []
    row = 0
    for s, (count, end) in enumerate(zip(batch.query_lens.tolist(), batch.context_lens.tolist(), strict=True)):
        position = end - count
        while position < end:
            start = position // QUERIES * QUERIES
            stop = min(end, start + QUERIES)
            first = 0 if window is None else max(0, start - window + 1) // QUERIES * QUERIES
            length = start + QUERIES - first
            tiles.append(
                PositionTile(
                    rows=slice(row, row + stop - position),
                    place=slice(position - start, stop - start),
                    keys=(halves[:, None] + _slots(batch.block_tables[s], kv.block_size, first, length, end)).view(-1),
                    length=length,
                    mask=_mask(length if window is not None else QUERIES, window, kv.dtype),
                )
            )
            row += stop - position
            position = stop
    return tiles


def _slots(table: np.ndarray[tuple[int], np.dtype[np.int32]], block_size: int, first: int, length: int, end: int) -> torch.Tensor:
    """Slots of the positions [first, first + length). Those from `end` on hold no token yet: the mask hides the first slot
    of the cache, which stands for them."""
    positions = np.arange(first, min(first + length, end))
    slots = np.zeros(length, dtype=np.int64)
    slots[: len(positions)] = table[positions // block_size].astype(np.int64) * block_size + positions % block_size
    return torch.from_numpy(slots)


@lru_cache(maxsize=64)
def _mask(length: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
    """[QUERIES, columns] for the last columns of a tile of `length` keys; without a window only the last square hides
    anything, so that one mask serves all lengths."""
    columns = np.arange(length if window is not None else QUERIES)
    positions = len(columns) - QUERIES + np.arange(QUERIES)[:, None]
    hidden = columns > positions
    if window is not None:
        hidden |= columns <= positions - window
    return torch.zeros((), dtype=dtype).masked_fill(torch.from_numpy(hidden), float("-inf"))
