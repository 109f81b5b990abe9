"""A convolution over the tokens of a row, beside the first layer of DeBERTa version 2."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from headway.kernels.interface import Activation, Kernels
from headway.kernels.row_groups import RowGroup
from headway.layers.layer_norm import LayerNorm


class RowConvolution:
    """norm(residual + act(convolution(x))); beyond the ends of a row are zeros."""

    __slots__ = ("_activate", "_bias", "_groups", "_weight", "norm")

    def __init__(self, kernels: Kernels, epsilon: float, groups: int, activation: Activation | None):
        """`activation` None is tanh."""
        self.norm = LayerNorm(kernels, epsilon)
        self._groups = groups
        self._activate = torch.tanh if activation is None else kernels.activations[activation]

    def load(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """`weight` [hidden, hidden / groups, tokens], `bias` [hidden]."""
        self._weight, self._bias = weight, bias

    def __call__(self, x: torch.Tensor, residual: torch.Tensor, rows: Sequence[RowGroup]) -> torch.Tensor:
        """x and residual [T, hidden] -> [T, hidden]."""
        return self.norm(residual + self._activate(torch.cat([self._convolved(x[group.tokens], group) for group in rows])))

    def _convolved(self, x: torch.Tensor, group: RowGroup) -> torch.Tensor:
        channels = x.view(group.rows, group.length, -1).transpose(1, 2)
        around = (self._weight.shape[2] - 1) // 2
        return F.conv1d(channels, self._weight, self._bias, padding=around, groups=self._groups).transpose(1, 2).flatten(0, 1)
