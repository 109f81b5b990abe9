"""Learned positions: a row of a table for every position, added to the token's embedding."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels


class PositionEmbedding:
    """x + table[position]. There is no position beyond the table."""

    __slots__ = ("_add_rows", "_first", "weight")

    weight: torch.Tensor

    def __init__(self, kernels: Kernels, first: int = 0):
        """Position 0 is row `first` of the table."""
        self._add_rows = kernels.add_rows
        self._first = first

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [first + positions, hidden]."""
        self.weight = weight[self._first :]

    def add_to(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x [T, hidden], positions int64 [T] -> [T, hidden]. Raises IndexError with the limit for positions beyond it."""
        try:
            return self._add_rows(x, self.weight, positions)
        except IndexError as error:
            rows = self.weight.shape[0]
            raise IndexError(f"position {int(positions.max())} asked of a model that learned {rows} positions") from error
