"""Making ForwardBatches by hand: block tables of scattered blocks, and batches of any mixture of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch


@dataclass(frozen=True)
class Chunk:
    """`tokens` of one sequence, the last of them at position `end` - 1; `blocks` hold the sequence."""

    tokens: Sequence[int]
    end: int
    blocks: Sequence[int]


def make_batch(chunks: Sequence[Chunk], block_size: int, garbage: int = 9_999) -> ForwardBatch:
    """All rows are wanted. Table entries beyond what a sequence needs are `garbage`, as the interface allows."""
    width = max(-(-c.end // block_size) for c in chunks)
    tables = np.full((len(chunks), width), garbage, dtype=np.int32)
    positions, slots, tokens = [], [], []
    for i, chunk in enumerate(chunks):
        needed = -(-chunk.end // block_size)
        tables[i, :needed] = chunk.blocks[:needed]
        for position in range(chunk.end - len(chunk.tokens), chunk.end):
            positions.append(position)
            slots.append(chunk.blocks[position // block_size] * block_size + position % block_size)
        tokens += chunk.tokens
    return ForwardBatch(
        token_ids=torch.tensor(tokens),
        positions=torch.tensor(positions),
        slots=torch.tensor(slots),
        query_lens=np.array([len(c.tokens) for c in chunks], dtype=np.int32),
        context_lens=np.array([c.end for c in chunks], dtype=np.int32),
        block_tables=tables,
        logits_rows=torch.arange(len(tokens)),
    )


def scattered_blocks(lengths: Sequence[int], block_size: int, seed: int) -> tuple[list[list[int]], int]:
    """Random disjoint blocks for sequences of these lengths, and how many blocks there are."""
    needed = [-(-length // block_size) for length in lengths]
    total = sum(needed) + 3
    order = np.random.default_rng(seed).permutation(total).tolist()
    starts = np.cumsum([0, *needed])
    return [order[a:b] for a, b in pairwise(starts)], total
