"""Matrices that reach the kernels as 8-bit floats: those that the online method fp8 rounds, where the kernels multiply such."""

from __future__ import annotations

import torch

from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.interface import Float8Kernels
from headway.models.fill import Stack
from headway.models.online_rounding import rounding_of


def as_float8(stack: Stack, weight: torch.Tensor, method: str | None, kernels: Float8Kernels | None) -> torch.Tensor | Float8Matrix:
    """`weight` after `round_stack`, as it came unless `kernels` take it as codes."""
    if kernels is None or rounding_of(stack, method) != "fp8" or not kernels.can_multiply(*weight.shape):
        return weight
    return Float8Matrix.of(weight, stack.rows)
