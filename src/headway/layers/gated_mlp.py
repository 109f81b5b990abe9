"""The feed-forward part of a decoder layer."""

from __future__ import annotations

from collections.abc import Callable

import torch

from headway.kernels.interface import Activation, Kernels
from headway.layers.linear import Linear
from headway.layers.norms import Norm
from headway.layers.residual_projection import ResidualProjection


def gate_kernel(kernels: Kernels, activation: Activation) -> Callable[[torch.Tensor], torch.Tensor]:
    """[T, 2n] = gate and up side by side -> act(gate) * up."""
    return {"silu": kernels.silu_gate, "gelu_tanh": kernels.gelu_tanh_gate, "gelu": kernels.gelu_gate}[activation]


class GatedMLP:
    """residual + down(act(gate(x)) * up(x)), gate and up in one matrix product."""

    __slots__ = ("_gate", "down", "gate_up")

    def __init__(self, kernels: Kernels, activation: Activation, post_norm: Norm | None, scale: float | None = None):
        self.gate_up = Linear(kernels)
        self.down = ResidualProjection(kernels, post_norm, scale)
        self._gate = gate_kernel(kernels, activation)

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x (normalised) and residual [T, hidden] -> the new residual."""
        return self.down(residual, self._gate(self.gate_up(x)))
