"""Matrix products with integer weights in plain torch: the definition of right for kernels that compute with the codes.

The weights stay integers and are dequantized for every call. Kernels that have integers on both sides round the inputs, too: each group
of a row of x is divided by its scale, its largest magnitude / 127, and rounded to nearest, ties to even; one that is not finite gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.kernels.interface import Activation, IntegerKernels
from headway.kernels.reference import ACTIVATIONS


@dataclass(frozen=True, slots=True)
class IntegerLinear:
    """`chunks` are the rows, one below the other. `rounded` inputs share a scale; None: they stay as they are. Everything is float32 until
    a result is rounded, once, to the dtype of x."""

    chunks: tuple[IntegerWeight, ...]
    bias: torch.Tensor | None
    rounded: int | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._product(x).to(x.dtype)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self._product(x)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self._product(x)).to(x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (residual.float() + self._product(x)).to(residual.dtype)

    def _product(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float() if self.rounded is None else round_inputs(x.float(), self.rounded)
        out = torch.cat([F.linear(wide, chunk.dequantized()) for chunk in self.chunks], -1)
        return out if self.bias is None else out + self.bias.float()


def round_inputs(x: torch.Tensor, group: int) -> torch.Tensor:
    """float32 [T, in] -> what int8 with one scale for each row and `group` inputs keeps of it; the last group may be short."""
    return torch.cat([_rounded(part) for part in torch.split(x, group, -1)], -1)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    scales = x.abs().amax(-1, keepdim=True) / 127.0
    codes = torch.where(scales > 0, torch.round(x / scales), torch.zeros_like(x))
    return torch.where(torch.isfinite(scales), codes * scales, torch.full_like(x, float("nan")))


def held_bytes(form: IntegerForm, out: int, width: int) -> int:
    """A byte for each code, float32 for scales and minimums."""
    return out * (width + width // form.group * (8 if form.minimums else 4))


def reference_integers(rounded: int | None = None) -> IntegerKernels:
    """For matrices of any form; `rounded` as in IntegerLinear."""
    return IntegerKernels(held_bytes, lambda matrix, bias: IntegerLinear(tuple(matrix.chunks), bias, rounded))
