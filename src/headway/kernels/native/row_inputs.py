"""RowInputs: where a recorded pass through an encoder reads what changes from batch to batch."""

from __future__ import annotations

import numpy as np
import torch

from headway.kernels.packed_batch import PackedBatch
from headway.kernels.row_groups import RowGroup, RowGroups


class RowInputs:
    """One buffer for each field of PackedBatch, at the largest size of any batch; addresses never change. What lies beyond the sizes of the
    last `load` is left over from earlier batches, and is valid input."""

    def __init__(self, tokens: int, rows: int):
        """Most tokens and rows of a batch. Raises ValueError for sizes below one."""
        if min(tokens, rows) < 1:
            raise ValueError(f"row inputs need positive sizes, found {(tokens, rows)}")
        self.token_ids, self.positions, self.segments = (torch.from_numpy(np.zeros(tokens, np.int64)) for _ in range(3))
        self._starts = np.zeros(rows + 1, np.int64)

    @property
    def groups(self) -> RowGroups:
        """All rows, to record with: kernels that read their starts when they run see those of the batch."""
        return RowGroups((RowGroup(0, len(self._starts) - 1, 1),), self._starts)

    def load(self, batch: PackedBatch) -> tuple[int, int]:
        """Copy a batch that fits. Returns its tokens and rows, as `Recording.run` wants them."""
        tokens, rows = len(batch.token_ids), len(batch.starts) - 1
        self.token_ids[:tokens] = batch.token_ids
        self.positions[:tokens] = batch.positions
        self.segments[:tokens] = 0 if batch.segments is None else batch.segments
        self._starts[: rows + 1] = batch.starts
        return tokens, rows

    def fits(self, batch: PackedBatch) -> bool:
        """Whether there is room for the batch, and a token in each of its rows."""
        return len(batch.token_ids) <= len(self.token_ids) and 1 < len(batch.starts) <= len(self._starts) and bool((batch.lengths > 0).all())
