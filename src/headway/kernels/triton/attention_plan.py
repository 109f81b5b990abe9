"""What the attention kernels of a step read about its sequences, on the device; made once for all layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.operands import padded, query_tile

Ints = npt.NDArray[np.int32]

_PROGRAMS: Final = 512  # that a decode step should have, so that every multiprocessor of a large GPU has some
_SPLIT_KEYS: Final = 256  # keys of a part at least: below that joining the parts costs more than it saves
_MOST_SPLITS: Final = 32


@dataclass(frozen=True, slots=True)
class Decodes:
    """Sequences of one new token, by number in the batch: int32 [N]. Each context is read in `splits` parts at once."""

    sequences: torch.Tensor
    splits: int


@dataclass(frozen=True, slots=True)
class Prefills:
    """Tiles of queries: int32 [N] each, the sequence in the batch and the first of its new tokens that is in the tile; `width` queries."""

    sequences: torch.Tensor
    first: torch.Tensor
    width: int


@dataclass(frozen=True, slots=True)
class TritonPlan:
    """int32 [S] each: the row of a sequence's first new token, how many it has, its context with them; block tables int32 [S, B].
    `slots` int64 [T]: where keys and values go, below zero = nowhere."""

    slots: torch.Tensor
    first_rows: torch.Tensor
    query_lens: torch.Tensor
    context_lens: torch.Tensor
    block_tables: torch.Tensor
    decodes: Decodes | None
    prefills: Prefills | None


@dataclass(frozen=True, slots=True)
class PlannedBatch(ForwardBatch):
    """A batch whose plan is made: the buffers of a captured graph."""

    plan: TritonPlan = field(kw_only=True)


def plan_attention(batch: ForwardBatch, kv: PagedKV, num_heads: int, windows: frozenset[int | None]) -> TritonPlan:
    """The arrays of the batch are copied to the device of its tensors in one piece. Windows need no preparation."""
    if isinstance(batch, PlannedBatch):
        return batch.plan
    counts = np.asarray(batch.query_lens, np.int32)
    first_rows = np.cumsum(counts, dtype=np.int32) - counts
    width = max(1, query_tile(kv.shape.head_dim, kv.dtype) // padded(num_heads // kv.shape.num_kv_heads, 1))
    single, several = np.flatnonzero(counts == 1).astype(np.int32), np.flatnonzero(counts > 1).astype(np.int32)
    tiles = -(-counts[several] // width)
    owners = np.repeat(several, tiles)
    starts = (np.arange(len(owners), dtype=np.int32) - np.repeat(np.cumsum(tiles) - tiles, tiles)).astype(np.int32) * width
    parts = [first_rows, counts, np.asarray(batch.context_lens, np.int32), np.asarray(batch.block_tables, np.int32), single, owners, starts]
    rows, queries, contexts, tables, decodes, owner, first = _on_device(parts, batch.slots.device)
    longest = int(batch.context_lens[single].max()) if len(single) else 0
    return TritonPlan(
        batch.slots, rows, queries, contexts, tables,
        Decodes(decodes, split_count(len(single), kv.shape.num_kv_heads, longest)) if len(single) else None,
        Prefills(owner, first, width) if len(owners) else None,
    )  # fmt: skip


def split_count(sequences: int, kv_heads: int, longest: int) -> int:
    """In how many parts the contexts of a decode step, of at most `longest` keys, are read at once."""
    wanted = -(-_PROGRAMS // (sequences * kv_heads))
    return max(1, min(wanted, -(-longest // _SPLIT_KEYS), _MOST_SPLITS))


def _on_device(parts: Sequence[Ints], device: torch.device) -> list[torch.Tensor]:
    joined = torch.from_numpy(np.concatenate([part.reshape(-1) for part in parts])).to(device)
    pieces = torch.split(joined, [part.size for part in parts])
    return [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]
