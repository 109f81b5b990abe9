"""Linear layers by native kernels: weights repacked once into panels (csrc/kernels/linear.h)."""

from __future__ import annotations

from typing import Final, Literal

import torch

from headway.kernels.interface import Activation
from headway.kernels.native.tape import Tape

DTYPES: Final = {torch.float32: 0, torch.bfloat16: 1}
MaybeActivation = Activation | Literal["none"]
ACTIVATIONS: Final[dict[MaybeActivation, int]] = {"none": -1, "silu": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3}
PANEL_WIDTH: Final = 32  # channels
# Numbers of a row that are multiplied in one step, by dtype: they fill four bytes.
_PER_STEP: Final = {torch.float32: 1, torch.bfloat16: 2}


class FloatLinear:
    """A weight of float32 or bfloat16. Sums are float32 and rounded once, at the end."""

    __slots__ = ("_bias", "_dtype", "_inputs", "_panels", "_tape", "_width")

    def __init__(self, tape: Tape, weight: torch.Tensor, bias: torch.Tensor | None):
        self._tape = tape
        self._width, self._inputs = weight.shape
        self._dtype = weight.dtype
        # As many inputs as whole steps have.
        steps = -(-self._inputs // _PER_STEP[weight.dtype])
        panels = -(-self._width // PANEL_WIDTH)
        self._panels = torch.empty(panels * steps * PANEL_WIDTH, dtype=torch.int32)
        self._bias = None if bias is None else bias.float().contiguous()
        plain = weight if weight.stride(1) == 1 else weight.contiguous()
        tape.sink.float_pack(
            self._panels.data_ptr(), plain.data_ptr(), self._width, self._inputs, plain.stride(0), 0, DTYPES[weight.dtype]
        )

    def __call__(self, x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """x [T, in] -> [T, out] in `dtype`, that of x when None."""
        return self._run(x, None, "none", dtype or x.dtype)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x, torch.float32)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return self._run(x, None, activation, x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._run(x, residual, "none", residual.dtype)

    def _run(self, x: torch.Tensor, residual: torch.Tensor | None, activation: MaybeActivation, dtype: torch.dtype) -> torch.Tensor:
        tape, bias, rows = self._tape, self._bias, x.shape[0]
        out = tape.empty(rows, self._width, dtype=dtype)
        scratch = tape.empty(rows * (self._inputs + 1), dtype=torch.float32)
        tape.sink.float_linear(
            out.data_ptr(), 0 if bias is None else bias.data_ptr(), 0 if residual is None else residual.data_ptr(), self._width,
            self._width, 0 if residual is None else residual.stride(0), DTYPES[dtype], ACTIVATIONS[activation],
            x.data_ptr(), self._panels.data_ptr(), scratch.data_ptr(), rows, self._inputs, x.stride(0), DTYPES[x.dtype], DTYPES[self._dtype],
        )  # fmt: skip
        return out


def pack_linear(tape: Tape, weight: torch.Tensor, bias: torch.Tensor | None) -> FloatLinear:
    """weight [out, in] of float32 or bfloat16, bias [out] or None. Keeps neither."""
    return FloatLinear(tape, weight, bias)
