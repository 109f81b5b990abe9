"""The way back into the residual stream: project, normalise where the architecture does, add."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels
from headway.layers.linear import Linear
from headway.layers.rms_norm import RMSNorm


class ResidualProjection:
    """residual + norm(x W^T + b); without a norm the addition happens inside the matrix product."""

    __slots__ = ("norm", "projection")

    def __init__(self, kernels: Kernels, norm: RMSNorm | None):
        self.projection = Linear(kernels)
        self.norm = norm

    def __call__(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """residual [T, out], x [T, in] -> [T, out]."""
        if self.norm is None:
            return self.projection.packed.add_to(residual, x)
        return residual + self.norm(self.projection(x))
