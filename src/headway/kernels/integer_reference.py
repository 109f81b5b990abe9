"""Matrix products with integer weights in plain torch: the definition of right for kernels that compute with the codes.

The weights stay integers and are dequantized for every call. With `rounded` activations a product has int8 on both sides: each row of x
is divided by its scale, its largest magnitude / 127, and rounded to nearest, ties to even; a row that is not finite gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F

from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.interface import Activation, IntegerKernels
from headway.kernels.reference import ACTIVATIONS


@dataclass(frozen=True, slots=True)
class IntegerLinear:
    """`chunks` are the rows, one below the other. Everything is float32 until a result is rounded, once, to the dtype of x."""

    chunks: tuple[IntegerWeight, ...]
    bias: torch.Tensor | None
    rounded: bool

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._product(x).to(x.dtype)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self._product(x)).to(x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (residual.float() + self._product(x)).to(residual.dtype)

    def _product(self, x: torch.Tensor) -> torch.Tensor:
        wide = round_rows(x.float()) if self.rounded else x.float()
        out = torch.cat([F.linear(wide, chunk.dequantized()) for chunk in self.chunks], -1)
        return out if self.bias is None else out + self.bias.float()


def round_rows(x: torch.Tensor) -> torch.Tensor:
    """float32 [T, in] -> what int8 with one scale for each row keeps of it."""
    scales = x.abs().amax(-1, keepdim=True) / 127.0
    codes = torch.where(scales > 0, torch.round(x / scales), torch.zeros_like(x))
    return torch.where(torch.isfinite(scales), codes * scales, torch.full_like(x, float("nan")))


def pack_integers(matrix: IntegerMatrix, bias: torch.Tensor | None, *, rounded: bool) -> IntegerLinear:
    return IntegerLinear(tuple(matrix.chunks), bias, rounded)


def held_bytes(form: IntegerForm, out: int, width: int) -> int:
    """A byte for each code, float32 for scales and minimums."""
    return out * (width + width // form.group * (8 if form.minimums else 4))


EXACT_INTEGERS = IntegerKernels(held_bytes, partial(pack_integers, rounded=False))
ROUNDED_INTEGERS = IntegerKernels(held_bytes, partial(pack_integers, rounded=True))
