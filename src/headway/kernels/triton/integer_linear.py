"""Linear layers whose weight is codes of 4 or 8 bits, with inputs as they are (W4A16, W8A16).

Codes are whole numbers that every float dtype holds exactly, so the matrix units multiply codes themselves; sums of a group are float32 and
get the scale of the group then. Nothing is rounded but the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import triton
import triton.language as tl
from triton.language import tensor

from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.triton.operands import dot_operand, padded
from headway.kernels.triton.wide_linear import WideLinear

_LARGEST_STEP: Final = 128
_SMALLEST_SIDE: Final = 16  # of a tile that matrix units multiply
_OUTPUTS: Final = 64  # of a program
_MOST_ROWS: Final = 64  # of a program


@triton.jit
def _multiply(
    out: tensor, x: tensor, codes: tensor, scales: tensor, floors: tensor, rows: tensor, outputs: tensor, steps: tensor, repeats: tensor,
    x_stride: tensor, offset: tensor, ROWS: tl.constexpr, OUTPUTS: tl.constexpr, STEP: tl.constexpr, PACKED: tl.constexpr,
    FLOORS: tl.constexpr, OPERAND: tl.constexpr,
) -> None:  # fmt: skip
    """float32 tiles. A step is STEP inputs that share scales; PACKED: a byte holds input i of its step in the low four bits, i + STEP / 2 in
    the high ones."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    output = tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
    real, inside = row < rows, output < outputs
    SIDE: tl.constexpr = STEP // 2 if PACKED else STEP
    places = tl.arange(0, SIDE)
    total = tl.zeros([ROWS, OUTPUTS], tl.float32)
    for step in range(steps):
        cells = (step * SIDE + places)[:, None].to(tl.int64) * outputs + output[None, :]
        read = tl.load(codes + cells, mask=inside[None, :], other=0).to(tl.int32)
        inputs = x + row[:, None].to(tl.int64) * x_stride + (step * STEP + places)[None, :]
        first = tl.load(inputs, mask=real[:, None], other=0.0).to(OPERAND)
        if PACKED:
            second = tl.load(inputs + SIDE, mask=real[:, None], other=0.0).to(OPERAND)
            part = tl.dot(first, ((read & 15) - offset).to(OPERAND), input_precision="ieee")
            part += tl.dot(second, ((read >> 4) - offset).to(OPERAND), input_precision="ieee")
        else:
            part = tl.dot(first, read.to(OPERAND), input_precision="ieee")
        shared = (step // repeats).to(tl.int64) * outputs + output
        total += part * tl.load(scales + shared, mask=inside, other=0.0)[None, :]
        if FLOORS:
            sums = tl.sum(first.to(tl.float32), 1)
            if PACKED:
                sums += tl.sum(second.to(tl.float32), 1)
            total += sums[:, None] * tl.load(floors + shared, mask=inside, other=0.0)[None, :]
    target = out + row[:, None].to(tl.int64) * outputs + output[None, :]
    tl.store(target, total, mask=real[:, None] & inside[None, :])


@dataclass(frozen=True, slots=True)
class StepForm:
    """`step` inputs are multiplied at once, `repeats` times with the same scales."""

    step: int
    repeats: int


def step_form(form: IntegerForm) -> StepForm | None:
    """None: groups that no tile of matrix units divides."""
    step = min(form.group & -form.group, _LARGEST_STEP)  # the largest power of two that divides the group
    if step < (2 * _SMALLEST_SIDE if form.bits == 4 else _SMALLEST_SIDE):
        return None
    return StepForm(step, form.group // step)


class IntegerLinear(WideLinear):
    """`codes` [bytes of an output, out], scales and floors float32 [groups, out], bias float32 [out]."""

    __slots__ = ("_bias", "_codes", "_floors", "_form", "_outputs", "_scales", "_steps")

    def __init__(self, device: torch.device, matrix: IntegerMatrix, steps: StepForm, bias: torch.Tensor | None):
        form = matrix.form
        self._form, self._steps, self._outputs = form, steps, matrix.out
        groups = matrix.width // form.group
        packed = form.bits == 4
        self._codes = torch.empty(
            matrix.width * form.bits // 8, matrix.out, dtype=torch.uint8 if packed else torch.int8, device=device
        )
        self._scales = torch.empty(groups, matrix.out, device=device)
        self._floors = torch.empty_like(self._scales) if form.minimums else None
        self._bias = None if bias is None else bias.float().to(device)
        first = 0
        for chunk in matrix.chunks:
            self._take(chunk, first)
            first += len(chunk.codes)

    def _take(self, chunk: IntegerWeight, first: int) -> None:
        rows = slice(first, first + len(chunk.codes))
        codes = chunk.codes
        if self._form.bits == 4:
            halves = codes.view(len(codes), codes.shape[1] // self._steps.step, 2, self._steps.step // 2)
            codes = (halves[:, :, 0] | (halves[:, :, 1] << 4)).reshape(len(codes), codes.shape[1] // 2)
        self._codes[:, rows] = codes.T.to(self._codes.device)
        self._scales[:, rows] = chunk.scales.T.to(self._scales.device)
        if self._floors is not None:  # with an offset that the kernel takes off
            assert chunk.minimums is not None
            self._floors[:, rows] = chunk.minimums.T.to(self._floors.device)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        whole = x if x.stride(1) == 1 else x.contiguous()
        out = torch.empty(rows, self._outputs, device=x.device)
        if rows:
            tile = min(padded(rows), _MOST_ROWS)
            _multiply[(triton.cdiv(rows, tile), triton.cdiv(self._outputs, _OUTPUTS))](
                out, whole, self._codes, self._scales, out if self._floors is None else self._floors, rows, self._outputs,
                x.shape[1] // self._steps.step, self._steps.repeats, whole.stride(0), self._form.offset, ROWS=tile, OUTPUTS=_OUTPUTS,
                STEP=self._steps.step, PACKED=self._form.bits == 4, FLOORS=self._floors is not None, OPERAND=dot_operand(x.dtype),
            )  # fmt: skip
        return out if self._bias is None else out.add_(self._bias)


def pack_integer_linear(device: torch.device, matrix: IntegerMatrix, bias: torch.Tensor | None) -> IntegerLinear:
    """Reads the matrix once. Raises ValueError where `step_form` has none for it."""
    steps = step_form(matrix.form)
    if steps is None:
        raise ValueError(f"scales of {matrix.form.group} inputs: the kernels need a multiple of {2 * _SMALLEST_SIDE}, of {_SMALLEST_SIDE} with 8 bits")
    return IntegerLinear(device, matrix, steps, bias)


def packed_bytes(form: IntegerForm, out: int, width: int) -> int | None:
    """What `pack_integer_linear` makes of a matrix takes, without a bias; None for one that it refuses."""
    if step_form(form) is None:
        return None
    return out * (width * form.bits // 8 + width // form.group * (8 if form.minimums else 4))
