"""Learned positions: a row of a table for every position, added to the token's embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F


class PositionEmbedding:
    """x + table[position]. There is no position beyond the table."""

    __slots__ = ("weight",)

    weight: torch.Tensor

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [positions, hidden]."""
        self.weight = weight

    def add_to(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x [T, hidden], positions int64 [T] -> [T, hidden]. Raises IndexError with the limit for positions beyond it."""
        try:
            return x + F.embedding(positions, self.weight)
        except IndexError as error:
            rows = self.weight.shape[0]
            raise IndexError(f"position {int(positions.max())} asked of a model that learned {rows} positions") from error
