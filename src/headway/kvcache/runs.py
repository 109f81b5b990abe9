"""Runs of new tokens of several sequences -> the flattened input of one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens [start, start + count) of a sequence. `blocks` hold at least its first start + count positions. `drafts` stand behind the
    last of `tokens`, and are part of `count`."""

    tokens: Sequence[int]
    blocks: Sequence[int]
    start: int
    count: int
    drafts: Sequence[int] = ()


def forward_batch(runs: Sequence[Run], rows: Sequence[int], block_size: int) -> ForwardBatch:
    """`rows` are the rows of the flattened tokens whose hidden state is wanted.

    Host work is a few vector operations plus one slice of a list for each sequence.
    """
    counts = np.array([run.count for run in runs], dtype=np.int32)
    starts = np.array([run.start for run in runs], dtype=np.int32)
    ends = starts + counts
    tables = np.zeros((len(runs), -(-int(ends.max()) // block_size)), dtype=np.int32)
    tokens: list[int] = []
    for i, run in enumerate(runs):
        tables[i, : len(run.blocks)] = run.blocks[: tables.shape[1]]
        if run.count == 1:
            tokens.append(run.tokens[run.start])
        else:
            tokens += run.tokens[run.start : run.start + run.count]
            tokens += run.drafts
    owner = np.repeat(np.arange(len(runs)), counts)
    first_row = np.cumsum(counts) - counts
    positions = np.arange(len(tokens)) + np.repeat(starts - first_row, counts)
    slots = tables[owner, positions // block_size].astype(np.int64) * block_size + positions % block_size
    return ForwardBatch(
        token_ids=torch.tensor(tokens, dtype=torch.int64),
        positions=torch.from_numpy(positions.astype(np.int64)),
        slots=torch.from_numpy(slots),
        query_lens=counts,
        context_lens=ends,
        block_tables=tables,
        logits_rows=torch.tensor(rows, dtype=torch.int64),
    )
