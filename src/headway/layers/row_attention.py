"""Self-attention of an encoder layer: every token of a row sees the others on both sides."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.kernels.interface import Kernels
from headway.kernels.row_groups import RowGroups
from headway.layers.linear import Linear
from headway.layers.residual_projection import ResidualProjection
from headway.layers.rotary import RotaryTables


@dataclass(frozen=True, slots=True)
class RowStep:
    """What all layers of one pass share."""

    groups: RowGroups
    tables: tuple[RotaryTables, ...] = ()
    bias: torch.Tensor | None = None  # what `Kernels.attend_rows` adds to scores


class RowAttention:
    """residual + output(attention(x)). Query, key and value heads come from one matrix product, side by side."""

    __slots__ = ("_attend", "_heads", "_reach", "_rope", "_rotate", "_scale", "output", "qkv")

    def __init__(self, kernels: Kernels, heads: int, head_dim: int, *, reach: int | None = None, rope: int | None = None):
        """`reach`: tokens it sees to either side, None = all. `rope`: index of its tables in `RowStep.tables`."""
        self.qkv = Linear(kernels)
        self.output = ResidualProjection(kernels, None)
        self._rotate, self._attend = kernels.rotate, kernels.attend_rows
        self._heads, self._scale = heads, head_dim**-0.5
        self._reach, self._rope = reach, rope

    def __call__(self, x: torch.Tensor, residual: torch.Tensor, step: RowStep) -> torch.Tensor:
        """x and residual [T, hidden] -> the new residual."""
        rows = self.qkv(x).view(x.shape[0], 3 * self._heads, -1)
        if self._rope is not None:
            tables = step.tables[self._rope]
            self._rotate(rows[:, : 2 * self._heads], tables.cos, tables.sin)
        return self.output(residual, self._attend(rows, step.groups, self._heads, self._reach, self._scale, step.bias))
