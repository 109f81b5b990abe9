"""DecodeBuffers: where a captured graph of a decode step reads what changes from step to step. Addresses never change."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch
from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.attention_plan import Decodes, PlannedBatch, TritonPlan, split_count

_NOWHERE: Final = -1  # the slot of a row that pads a batch


class DecodeBuffers:
    """Room for `sequences` of one new token each, and `blocks` blocks of each.

    Rows that pad a batch are token 0 at position 0 with no context: they read nothing of the cache and write nothing to it.
    """

    def __init__(self, kv: PagedKV, sequences: int, blocks: int):
        """Raises ValueError for sizes below one."""
        if min(sequences, blocks) < 1:
            raise ValueError(f"decode buffers need positive sizes, found {sequences} sequences of {blocks} blocks")
        self.sequences, self.blocks = sequences, blocks
        self._longest = blocks * kv.block_size
        self._kv_heads = kv.shape.num_kv_heads
        device = kv.layers[0].device
        self._tokens = torch.zeros(3, sequences, dtype=torch.int64, device=device)  # ids, positions, slots
        self._tokens[2] = _NOWHERE
        self._contexts = torch.zeros(sequences, dtype=torch.int32, device=device)
        self._tables = torch.zeros(sequences, blocks, dtype=torch.int32, device=device)
        self._rows = torch.arange(sequences, dtype=torch.int64, device=device)
        self._numbers = torch.arange(sequences, dtype=torch.int32, device=device)
        self._ones = torch.ones(sequences, dtype=torch.int32, device=device)

    def batch(self, size: int) -> PlannedBatch:
        """Views of the first `size` rows of every buffer, to capture with. Contexts are said to be the longest possible."""
        ids, positions, slots = self._tokens[:, :size]
        plan = TritonPlan(
            slots, self._numbers[:size], self._ones[:size], self._contexts[:size], self._tables[:size],
            Decodes(self._numbers[:size], split_count(size, self._kv_heads, self._longest)), None,
        )  # fmt: skip
        return PlannedBatch(
            token_ids=ids, positions=positions, slots=slots, query_lens=np.ones(size, np.int32),
            context_lens=np.full(size, self._longest, np.int32), block_tables=np.zeros((size, self.blocks), np.int32),
            logits_rows=self._rows[:size], plan=plan,
        )  # fmt: skip

    def fits(self, batch: ForwardBatch) -> bool:
        """Whether every sequence of the batch has one token, which is wanted, and there is room for all."""
        count = len(batch.query_lens)
        return (
            len(batch.token_ids) == count <= self.sequences
            and batch.block_tables.shape[1] <= self.blocks
            and len(batch.logits_rows) == count
            and bool((batch.logits_rows.numpy() == np.arange(count)).all())
        )

    def load(self, batch: ForwardBatch, size: int) -> None:
        """Copy a batch that fits, which is on the CPU, into the first rows, and padding into those up to `size`."""
        count = len(batch.query_lens)
        tokens = torch.zeros(3, size, dtype=torch.int64)
        tokens[2, count:] = _NOWHERE
        for row, values in zip(tokens, (batch.token_ids, batch.positions, batch.slots), strict=True):
            row[:count] = values
        contexts = torch.zeros(size, dtype=torch.int32)
        contexts[:count] = torch.from_numpy(batch.context_lens)
        self._tokens[:, :size].copy_(tokens)
        self._contexts[:size].copy_(contexts)
        self._tables[:count, : batch.block_tables.shape[1]].copy_(torch.from_numpy(batch.block_tables))


def decode_buffers(kv: PagedKV, sequences: int, positions: int) -> DecodeBuffers:
    """For steps of at most so many sequences, of at most so many positions."""
    return DecodeBuffers(kv, sequences, -(-positions // kv.block_size))
