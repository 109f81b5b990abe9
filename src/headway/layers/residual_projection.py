"""The way back into the residual stream: project, normalise where the architecture does, add."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels
from headway.layers.linear import Linear
from headway.layers.norms import Norm


class ResidualProjection:
    """residual + scale * norm(x W^T + b); without norm and scale the addition happens inside the matrix product."""

    __slots__ = ("_add_scaled", "_scale", "norm", "projection")

    def __init__(self, kernels: Kernels, norm: Norm | None, scale: float | None = None):
        self.projection = Linear(kernels)
        self.norm = norm
        self._add_scaled = kernels.add_scaled
        self._scale = scale

    def __call__(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """residual [T, out], x [T, in] -> [T, out]."""
        if self.norm is None and self._scale is None:
            return self.projection.packed.add_to(residual, x)
        out, scale = self.projection(x), 1.0 if self._scale is None else self._scale
        return self._add_scaled(residual, out, scale) if self.norm is None else self.norm.add_to(residual, out, scale)
