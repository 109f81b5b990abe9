"""The feed-forward part of a decoder layer without a gate."""

from __future__ import annotations

import torch

from headway.kernels.interface import Activation, Kernels
from headway.layers.linear import Linear
from headway.layers.norms import Norm
from headway.layers.residual_projection import ResidualProjection


class PlainMLP:
    """residual + down(act(up(x)))."""

    __slots__ = ("_activation", "down", "up")

    def __init__(self, kernels: Kernels, activation: Activation, post_norm: Norm | None, scale: float | None = None):
        self.up = Linear(kernels)
        self.down = ResidualProjection(kernels, post_norm, scale)
        self._activation: Activation = activation

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x (normalised) and residual [T, hidden] -> the new residual."""
        return self.down(residual, self.up.packed.activated(x, self._activation))
