"""The feed-forward part of a decoder layer."""

from __future__ import annotations

from typing import Literal

import torch

from headway.kernels.interface import Kernels
from headway.layers.linear import Linear
from headway.layers.residual_projection import ResidualProjection
from headway.layers.rms_norm import RMSNorm

Activation = Literal["silu", "gelu_tanh"]


class GatedMLP:
    """residual + down(act(gate(x)) * up(x)), gate and up in one matrix product."""

    __slots__ = ("_gate", "down", "gate_up")

    def __init__(self, kernels: Kernels, activation: Activation, post_norm: RMSNorm | None):
        self.gate_up = Linear(kernels)
        self.down = ResidualProjection(kernels, post_norm)
        self._gate = {"silu": kernels.silu_gate, "gelu_tanh": kernels.gelu_tanh_gate}[activation]

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x (normalised) and residual [T, hidden] -> the new residual."""
        return self.down(residual, self._gate(self.gate_up(x)))
