"""StepInputs: where a recorded forward pass reads what changes from step to step."""

from __future__ import annotations

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch


class StepInputs:
    """One buffer for each field of ForwardBatch, at the largest size of any step; addresses never change. What lies beyond the sizes of
    the last `load` is left over from earlier steps, and is valid input: token 0 at position 0, or whatever was there."""

    def __init__(self, tokens: int, outputs: int, sequences: int, blocks: int, block_size: int):
        """Most tokens, wanted rows and sequences of a step; most blocks of a sequence. Raises ValueError for sizes below one."""
        if min(tokens, outputs, sequences, blocks, block_size) < 1:
            raise ValueError(f"step inputs need positive sizes, found {(tokens, outputs, sequences, blocks, block_size)}")
        self._token_ids = np.zeros(tokens, np.int64)
        self._positions = np.zeros(tokens, np.int64)
        self._slots = np.zeros(tokens, np.int64)
        self._query_lens = np.ones(sequences, np.int32)
        self._context_lens = np.ones(sequences, np.int32)
        self._block_tables = np.zeros((sequences, blocks), np.int32)
        self._logits_rows = np.zeros(outputs, np.int64)
        self._longest = blocks * block_size

    def as_batch(self) -> ForwardBatch:
        """Views of all of every buffer, to record with. Contexts have the largest length: tables that grow with them are made for that."""
        self._context_lens[:] = self._longest
        return ForwardBatch(
            token_ids=torch.from_numpy(self._token_ids), positions=torch.from_numpy(self._positions),
            slots=torch.from_numpy(self._slots), query_lens=self._query_lens, context_lens=self._context_lens,
            block_tables=self._block_tables, logits_rows=torch.from_numpy(self._logits_rows),
        )  # fmt: skip

    def load(self, batch: ForwardBatch) -> tuple[int, int, int]:
        """Copy a batch in. Returns its tokens, outputs and sequences, as `Recording.run` wants them.

        Raises ValueError when it has more of anything than there is room for; nothing is copied then.
        """
        tokens, outputs, sequences = len(batch.token_ids), len(batch.logits_rows), len(batch.query_lens)
        if not self.fits(batch):
            raise ValueError(
                f"a batch of {tokens} tokens, {outputs} outputs, {sequences} sequences of up to {batch.block_tables.shape[1]} blocks does not"
                f" fit inputs for {len(self._slots)}, {len(self._logits_rows)} and {self._block_tables.shape}"
            )
        self._token_ids[:tokens] = batch.token_ids.numpy()
        self._positions[:tokens] = batch.positions.numpy()
        self._slots[:tokens] = batch.slots.numpy()
        self._query_lens[:sequences] = batch.query_lens
        self._context_lens[:sequences] = batch.context_lens
        self._block_tables[:sequences, : batch.block_tables.shape[1]] = batch.block_tables
        self._logits_rows[:outputs] = batch.logits_rows.numpy()
        return tokens, outputs, sequences

    def fits(self, batch: ForwardBatch) -> bool:
        """Whether `load` has room for the batch."""
        return (
            len(batch.token_ids) <= len(self._slots)
            and len(batch.logits_rows) <= len(self._logits_rows)
            and len(batch.query_lens) <= len(self._query_lens)
            and batch.block_tables.shape[1] <= self._block_tables.shape[1]
        )
