"""Linear layers by native kernels: weights repacked once into panels (csrc/kernels/linear.h)."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.native.panel_linear import DTYPES, PANEL_WIDTH, Output, PanelLinear
from headway.kernels.native.tape import Tape

# Numbers of a row that are multiplied in one step, by dtype: they fill four bytes.
_PER_STEP: Final = {torch.float32: 1, torch.bfloat16: 2}


class FloatLinear(PanelLinear):
    """A weight of float32 or bfloat16."""

    __slots__ = ("_dtype", "_panels")

    def __init__(self, tape: Tape, weight: torch.Tensor, bias: torch.Tensor | None):
        width, inputs = weight.shape
        super().__init__(tape, width, inputs, bias)
        self._dtype = DTYPES[weight.dtype]
        steps = 4 * -(-inputs // (4 * _PER_STEP[weight.dtype]))
        self._panels = torch.empty(-(-width // PANEL_WIDTH) * steps * PANEL_WIDTH, dtype=torch.int32)
        plain = weight if weight.stride(1) == 1 else weight.contiguous()
        tape.sink.float_pack(self._panels.data_ptr(), plain.data_ptr(), width, inputs, plain.stride(0), 0, self._dtype)

    def _multiply(self, output: Output, x: torch.Tensor) -> None:
        rows, inputs = x.shape
        scratch = self._tape.scratch(4 * rows * (inputs + 8))
        self._tape.sink.float_linear(
            *output, x.data_ptr(), self._panels.data_ptr(), scratch, rows, inputs, x.stride(0), DTYPES[x.dtype], self._dtype
        )


def pack_linear(tape: Tape, weight: torch.Tensor, bias: torch.Tensor | None) -> FloatLinear:
    """weight [out, in] of float32 or bfloat16, bias [out] or None. Keeps neither."""
    return FloatLinear(tape, weight, bias)
