"""Linear layers whose weight is codes of 4 or 8 bits (csrc/kernels/linear_integer.h): activations are rounded to 8 bits in the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.interface import Activation
from headway.kernels.native.linear import ACTIVATIONS, DTYPES, PANEL_WIDTH, MaybeActivation
from headway.kernels.native.tape import Tape

# Inputs that share a scale of the activations, at most. Measured (SmolLM2 135M, 2,304 tokens of prose and code, exact weights, all linear
# layers and the head): the perplexity rises by 4.1 % with one scale a row, 1.4 % with 192 inputs, X % with 128, Y % with 64, Z % with 32.
LARGEST_GROUP: Final = 64
_STEP: Final = 4  # inputs that are multiplied at once
_FLIP: Final = 0x80  # makes signed codes unsigned, 128 higher


@dataclass(frozen=True, slots=True)
class PanelForm:
    """What a packed weight is made of. `plain`: one scale for a whole channel, which is applied at the end. `repeats`: groups of the
    kernel in one of the checkpoint. Bytes: of codes, scales and floors of a group of a panel."""

    bits: int
    offset: int
    group: int
    plain: bool
    floors: bool
    repeats: int

    @property
    def group_bytes(self) -> int:
        return PANEL_WIDTH * (self.group * self.bits // 8 + (0 if self.plain else 2) + (2 if self.floors else 0))


def panel_form(form: IntegerForm, width: int) -> PanelForm | None:
    """None: there is no kernel for groups that are no multiple of four inputs."""
    offset = form.offset if form.bits == 4 else _FLIP
    if form.bits == 8 and form.group == width and not form.minimums:
        return PanelForm(8, offset, LARGEST_GROUP, plain=True, floors=False, repeats=1)
    fitting = [n for n in range(_STEP, LARGEST_GROUP + 1, _STEP) if form.group % n == 0]
    if not fitting:
        return None
    return PanelForm(form.bits, offset, fitting[-1], plain=False, floors=form.minimums, repeats=form.group // fitting[-1])


class IntegerLinear:
    """A weight of codes. Sums of products of codes are int32, those of groups float32, and rounded once, at the end."""

    __slots__ = ("_bias", "_form", "_inputs", "_multipliers", "_panels", "_scratch_row", "_tape", "_width")

    def __init__(self, tape: Tape, matrix: IntegerMatrix, form: PanelForm, bias: torch.Tensor | None):
        groups = -(-matrix.width // form.group)
        panels = -(-matrix.out // PANEL_WIDTH)
        self._tape = tape
        self._form = form
        self._width, self._inputs = matrix.out, matrix.width
        self._scratch_row = groups * (form.group + 12)
        self._panels = torch.empty(panels * groups * form.group_bytes, dtype=torch.uint8)
        self._multipliers = torch.empty(panels * PANEL_WIDTH)
        self._bias = None if bias is None else bias.float().contiguous()
        first = 0
        for chunk in _whole_panels(matrix.chunks):
            self._pack(chunk, first)
            first += chunk.codes.shape[0]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self._panels, self._multipliers, self._bias) if part is not None)

    def __call__(self, x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """x [T, in] -> [T, out] in `dtype`, that of x when None."""
        return self._run(x, None, "none", dtype or x.dtype)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x, torch.float32)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return self._run(x, None, activation, x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._run(x, residual, "none", residual.dtype)

    def _pack(self, chunk: IntegerWeight, first: int) -> None:
        form = self._form
        codes = chunk.codes.contiguous()
        scales, floors = (None if part is None else _repeated(part, form) for part in (chunk.scales, chunk.minimums))
        assert scales is not None
        self._tape.sink.integer_pack(
            self._panels.data_ptr(), self._multipliers.data_ptr(), codes.data_ptr(), scales.data_ptr(),
            0 if floors is None else floors.data_ptr(), form.bits, form.offset, form.group, form.plain, form.floors,
            _FLIP if form.bits == 8 else 0, codes.shape[0], self._inputs, first,
        )  # fmt: skip

    def _run(self, x: torch.Tensor, residual: torch.Tensor | None, activation: MaybeActivation, dtype: torch.dtype) -> torch.Tensor:
        tape, form, bias, rows = self._tape, self._form, self._bias, x.shape[0]
        out = tape.empty(rows, self._width, dtype=dtype)
        scratch = tape.empty(rows, self._scratch_row, dtype=torch.uint8)
        tape.sink.integer_linear(
            out.data_ptr(), 0 if bias is None else bias.data_ptr(), 0 if residual is None else residual.data_ptr(), self._width,
            self._width, 0 if residual is None else residual.stride(0), DTYPES[dtype], ACTIVATIONS[activation],
            x.data_ptr(), self._panels.data_ptr(), self._multipliers.data_ptr(), scratch.data_ptr(), form.bits, form.offset,
            form.group, form.plain, form.floors, rows, self._inputs, x.stride(0), DTYPES[x.dtype],
        )  # fmt: skip
        return out


def pack_integer_linear(tape: Tape, matrix: IntegerMatrix, bias: torch.Tensor | None) -> IntegerLinear:
    """Reads the matrix once. Raises ValueError where `panel_form` has none for it."""
    form = panel_form(matrix.form, matrix.width)
    if form is None:
        raise ValueError(f"scales of {matrix.form.group} inputs: the kernels need a multiple of {_STEP}")
    return IntegerLinear(tape, matrix, form, bias)


def packed_bytes(form: IntegerForm, out: int, width: int) -> int | None:
    """What `pack_integer_linear` makes of a matrix takes, without a bias; None for one that it refuses."""
    packed = panel_form(form, width)
    if packed is None:
        return None
    panels = -(-out // PANEL_WIDTH)
    return panels * (-(-width // packed.group) * packed.group_bytes + 4 * PANEL_WIDTH)


def _repeated(scales: torch.Tensor, form: PanelForm) -> torch.Tensor:
    return (scales if form.repeats == 1 else scales.repeat_interleave(form.repeats, 1)).contiguous()


def _whole_panels(chunks: Iterable[IntegerWeight]) -> Iterator[IntegerWeight]:
    """The same rows in chunks that end where panels do, but for the last."""
    held: IntegerWeight | None = None
    for chunk in chunks:
        joined = chunk if held is None else _joined(held, chunk)
        whole = joined.codes.shape[0] // PANEL_WIDTH * PANEL_WIDTH
        if whole:
            yield _rows(joined, 0, whole)
        held = _rows(joined, whole, joined.codes.shape[0]) if whole < joined.codes.shape[0] else None
    if held is not None:
        yield held


def _rows(weight: IntegerWeight, begin: int, end: int) -> IntegerWeight:
    minimums = None if weight.minimums is None else weight.minimums[begin:end]
    return replace(weight, codes=weight.codes[begin:end], scales=weight.scales[begin:end], minimums=minimums)


def _joined(first: IntegerWeight, second: IntegerWeight) -> IntegerWeight:
    minimums = None
    if first.minimums is not None and second.minimums is not None:
        minimums = torch.cat((first.minimums, second.minimums))
    return replace(first, codes=torch.cat((first.codes, second.codes)), scales=torch.cat((first.scales, second.scales)), minimums=minimums)
