"""Which sequences of a batch attend together, and in what pieces: made once per step, used by every layer.

Sequences are put into few groups of like query length and like context length and padded inside a group, so that a
layer costs a number of operator calls that depends on the groups and the amount of work, never on how many sequences
there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from headway.kernels.attention_tiles import Span, Tile, make_tiles
from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV

Ints = npt.NDArray[np.int64]

# Two groups become one when that adds no more than this many padded (query, key) pairs: computing a pair for all heads
# takes 60-80 ns, an additional group about 40 us of operator calls (measured, 9/3 heads of 64, two cores).
_MERGE_PAIRS: Final = 512

# Keys and values gathered at once. Beyond that they leave the cache before they are used: 32 sequences of 1,024 tokens,
# 8 heads of 128, took 23 ms gathered whole (134 MB) and 13 ms gathered by 8 MB.
_GATHER_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Group:
    """R sequences padded to `width` queries and `length` keys. Query j of row r is token `tokens[r * width + j]`."""

    rows: int
    width: int
    length: int
    blocks: torch.Tensor  # [2 * R * kv heads * length / block_size] rows of PagedKV.block_rows: keys, then values
    tokens: torch.Tensor | None  # [R * width] int64; None when the group is the whole batch in its order
    real: torch.Tensor | None  # which of the R * width queries are no padding; None when all are
    targets: torch.Tensor | None  # the tokens that the real queries are
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """`groups` by window; `slot_rows` [T, 2 * kv heads]: where keys and values go in PagedKV.token_rows."""

    slot_rows: torch.Tensor
    groups: dict[int | None, tuple[Group, ...]]


def plan_attention(batch: ForwardBatch, kv: PagedKV, num_heads: int, windows: frozenset[int | None]) -> AttentionPlan:
    """Plan the attention of one step for every distinct window."""
    halves = torch.arange(2 * kv.shape.num_kv_heads) * (kv.num_blocks * kv.block_size)
    longest = int(batch.context_lens.max())
    # A window that reaches every key is none.
    effective = {window: None if window is None or window >= longest else window for window in windows}
    made = {window: tuple(_groups(batch, kv, num_heads, window)) for window in set(effective.values())}
    return AttentionPlan(batch.slots[:, None] + halves, {window: made[short] for window, short in effective.items()})


def _groups(batch: ForwardBatch, kv: PagedKV, num_heads: int, window: int | None) -> Iterator[Group]:
    queries = batch.query_lens.astype(np.int64)
    ends = batch.context_lens.astype(np.int64)
    # With a window only the blocks that the first query still sees are read.
    first_blocks = (
        np.zeros_like(ends) if window is None else np.maximum(ends - queries - window + 1, 0) // kv.block_size
    )
    counts = -(-ends // kv.block_size) - first_blocks
    first_tokens = np.cumsum(queries) - queries
    for rows in _partition(queries, counts, kv):
        yield _group(rows, batch, kv, num_heads, window, first_blocks, counts, first_tokens)


def _partition(queries: Ints, counts: Ints, kv: PagedKV) -> Iterator[Ints]:
    """Split the sequences: by power of two of query length, then of blocks to read, then by bytes gathered at once."""
    if len(queries) == 1:
        yield np.zeros(1, dtype=np.int64)
        return
    query_class, count_class = (np.ceil(np.log2(x)).astype(np.int64) for x in (queries, counts))
    block_bytes = 2 * kv.shape.num_kv_heads * kv.block_size * kv.shape.head_dim * kv.dtype.itemsize
    for wanted in np.unique(query_class):
        same = np.flatnonzero(query_class == wanted)
        for rows in _merge(same, count_class, queries, counts, kv.block_size):
            most = max(1, _GATHER_BYTES // (block_bytes * int(counts[rows].max())))
            yield from (rows[i : i + most] for i in range(0, len(rows), most))


def _merge(rows: Ints, classes: Ints, queries: Ints, counts: Ints, block_size: int) -> Iterator[Ints]:
    """Rows by class of block count, neighbouring classes together where the padding costs less than another group."""
    held: Ints | None = None
    for wanted in np.unique(classes[rows]):
        found = rows[classes[rows] == wanted]
        if held is not None:
            padding = int(counts[found].max() * len(held) - counts[held].sum()) * block_size * int(queries[found].max())
            if padding <= _MERGE_PAIRS:
                held = np.sort(np.concatenate((held, found)))
                continue
            yield held
        held = found
    if held is not None:
        yield held


def _group(
    rows: Ints, batch: ForwardBatch, kv: PagedKV, num_heads: int, window: int | None,
    first_blocks: Ints, counts: Ints, first_tokens: Ints,
) -> Group:  # fmt: skip
    queries = batch.query_lens[rows].astype(np.int64)
    ends = batch.context_lens[rows].astype(np.int64)
    width, blocks = int(queries.max()), int(counts[rows].max())
    origins = first_blocks[rows] * kv.block_size
    span = Span(
        starts=ends - queries - origins, ends=ends - origins, width=width, length=blocks * kv.block_size, window=window
    )
    steps = np.minimum(np.arange(width), queries[:, None] - 1)
    tokens = (first_tokens[rows][:, None] + steps).reshape(-1)
    real = None if int(queries.min()) == width else np.flatnonzero(np.arange(width) < queries[:, None])
    whole = real is None and len(tokens) == len(batch.slots) and bool((tokens[1:] > tokens[:-1]).all())
    return Group(
        rows=len(rows), width=width, length=span.length,
        blocks=_block_rows(batch.block_tables[rows], first_blocks[rows], counts[rows], blocks, kv),
        tokens=None if whole else torch.from_numpy(tokens),
        real=None if real is None else torch.from_numpy(real),
        targets=None if real is None else torch.from_numpy(tokens[real]),
        tiles=make_tiles(span, num_heads, kv.dtype),
    )  # fmt: skip


def _block_rows(tables: npt.NDArray[np.int32], first: Ints, counts: Ints, blocks: int, kv: PagedKV) -> torch.Tensor:
    """[2, R, kv heads, blocks] flattened. Rows with fewer blocks are filled up with block 0, which the mask hides."""
    steps = np.arange(blocks)
    columns = np.minimum(first[:, None] + steps, tables.shape[1] - 1)
    chosen = np.where(steps < counts[:, None], np.take_along_axis(tables, columns, 1), 0).astype(np.int64)
    heads = np.arange(2 * kv.shape.num_kv_heads).reshape(2, 1, -1, 1) * kv.num_blocks
    return torch.from_numpy((heads + chosen[None, :, None, :]).reshape(-1))
