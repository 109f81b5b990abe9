"""Row-wise kernels whose result for a token does not depend, to the last bit, on what else is in the batch.

Three things make ordinary operators depend on it, and each is taken away here:

- A matrix product picks its blocking by the number of rows. Linear layers therefore always see `ROWS` rows, padded with
  zeros. Within one shape every row is computed alike, wherever it lies (tested).
- An element-wise function computes the last elements of a tensor, and of every thread's share of it, with scalar code, and
  scalar and vector exp, tanh, sin or cos differ in the last bit. `elementwise` leaves no such remainder.
- Fused multiply-add may or may not happen in those remainders. Here every operator rounds once, so either path agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch
import torch.nn.functional as F

from headway.kernels.interface import Activation, PackedLinear
from headway.kernels.reference import PlainLinear
from headway.kernels.torch_linear import pack_linear as pack
from headway.kernels.torch_pointwise import ACTIVATIONS as TORCH_ACTIVATIONS
from headway.kernels.torch_pointwise import tables_of

# Measured (two Zen 5 cores, bf16, [576, 3072], microseconds for a call): 47 for 1 row, 56 for 4, 87 for 8, 151 for 16, 4,106
# for 512. Eight rows cost a single decode 1.9 times one row, and a prefill 1.35 times what 512 rows at once cost a row.
ROWS: Final = 8

# A multiple of two vectors of any dtype (AVX-512 holds 32 bfloat16 numbers), and a size that torch gives to one thread.
_UNIT: Final = 128
_PIECE: Final = 128 * _UNIT


@dataclass(frozen=True, slots=True)
class RowTiles:
    """A linear layer that is only ever called with `rows` rows, each time at the beginning of memory of its own: some
    libraries choose their code by how the memory is aligned."""

    packed: PackedLinear
    width: int  # of the result
    rows: int

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        out = x.new_empty(x.shape[0], self.width)
        for begin in range(0, x.shape[0], self.rows):
            part = x[begin : begin + self.rows]
            out[begin : begin + self.rows] = self.packed(self._full(part))[: part.shape[0]]
        return out

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x).float()

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self(x))

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(residual)
        for begin in range(0, x.shape[0], self.rows):
            part, before = x[begin : begin + self.rows], residual[begin : begin + self.rows]
            out[begin : begin + self.rows] = self.packed.add_to(self._full(before), self._full(part))[: part.shape[0]]
        return out

    def _full(self, part: torch.Tensor) -> torch.Tensor:
        if part.shape[0] == self.rows:
            return part.clone(memory_format=torch.contiguous_format)
        full = part.new_zeros(self.rows, part.shape[1])
        full[: part.shape[0]] = part
        return full


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    """Where oneDNN has no fast arithmetic for the dtype, row by row: of other libraries' products a row may depend on its
    place among the rows (MKL's do, found by the test)."""
    width = weight.shape[0]
    packed = pack(weight, bias)
    return RowTiles(packed, width, 1 if isinstance(packed, PlainLinear) else ROWS)


def elementwise(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Whole vectors only, in pieces that one thread computes."""
    flat = x.reshape(-1)
    count = flat.numel()
    whole = F.pad(flat, (0, -count % _UNIT))
    out = torch.empty_like(whole)
    for begin in range(0, whole.numel(), _PIECE):
        out[begin : begin + _PIECE] = function(whole[begin : begin + _PIECE])
    return out[:count].view(x.shape)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """torch's LayerNorm kernel takes row after row; the mean of [x, -x] is zero, so it is the RMSNorm of x."""
    wide = x.float() if weight.dtype != x.dtype else x
    both = torch.cat((wide, wide.neg()), -1)
    normed = torch.layer_norm(both, both.shape[-1:], None, None, epsilon).narrow(-1, 0, x.shape[-1])
    return (normed * weight).to(x.dtype)


def add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float, scale: float
) -> torch.Tensor:
    return add_scaled(residual, rms_norm(x, weight, epsilon), scale)


def norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    x.copy_(rms_norm(x, weight, epsilon))


def add_scaled(residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
    return residual + x * scale


def rotary_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, factor: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    angles = positions.float()[:, None] * frequencies
    return tables_of(elementwise(torch.cos, angles), elementwise(torch.sin, angles), factor, dtype)


def finish_logits(logits: torch.Tensor, divisor: float | None, softcap: float | None) -> torch.Tensor:
    logits = logits.float()
    if divisor is not None:
        logits.div_(divisor)
    return logits if softcap is None else elementwise(torch.tanh, logits.div_(softcap)).mul_(softcap)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    partners = x.roll(x.shape[-1] // 2, -1)
    x.copy_((x * cos).add_(partners.mul_(sin)))


ACTIVATIONS: Final = {name: partial(elementwise, function) for name, function in TORCH_ACTIVATIONS.items()}


def silu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return ACTIVATIONS["silu"](gate).mul_(up)


def gelu_tanh_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return ACTIVATIONS["gelu_tanh"](gate).mul_(up)


def gelu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return ACTIVATIONS["gelu"](gate).mul_(up)
