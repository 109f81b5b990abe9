"""Linear layers whose weight is codes of 4 or 8 bits (csrc/kernels/linear_integer.h): activations are rounded to 8 bits in the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.native.panel_linear import DTYPES, PANEL_WIDTH, Output, PanelLinear
from headway.kernels.native.tape import Tape

# Inputs that share a scale of the activations, at most. Measured (SmolLM2 135M, 2,304 tokens of prose and code, exact weights, all linear
# layers and the head): the perplexity rises by 4.1 % with one scale a row, 1.4 % with 192 inputs, 0.6 % with 64, 0.5 % with 32. Embeddings
# of MiniLM with int8 weights: cosine with float32 0.9974 with one scale a row, 0.9993 with 64 inputs, 0.9994 with 32.
LARGEST_GROUP: Final = 64
_STEP: Final = 16  # inputs that are multiplied in a row
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
    def arguments(self) -> tuple[int, int, int, bool, bool]:
        """IntegerForm of csrc/kernels/linear_integer.h, for the sink."""
        return self.bits, self.offset, self.group, self.plain, self.floors

    @property
    def group_bytes(self) -> int:
        return PANEL_WIDTH * (self.group * self.bits // 8 + (0 if self.plain else 2) + (2 if self.floors else 0))


def panel_form(form: IntegerForm, width: int) -> PanelForm | None:
    """None: there is no kernel for groups that are no multiple of sixteen inputs."""
    offset = form.offset if form.bits == 4 else _FLIP
    if form.bits == 8 and form.group == width and not form.minimums:
        return PanelForm(8, offset, LARGEST_GROUP, plain=True, floors=False, repeats=1)
    fitting = [n for n in range(_STEP, LARGEST_GROUP + 1, _STEP) if form.group % n == 0]
    if not fitting:
        return None
    return PanelForm(form.bits, offset, fitting[-1], plain=False, floors=form.minimums, repeats=form.group // fitting[-1])


class IntegerLinear(PanelLinear):
    """A weight of codes. Sums of products of codes are int32, those of groups float32."""

    __slots__ = ("_form", "_multipliers", "_panels", "_scratch_row")

    def __init__(self, tape: Tape, matrix: IntegerMatrix, form: PanelForm, bias: torch.Tensor | None):
        super().__init__(tape, matrix.out, matrix.width, bias)
        groups = -(-matrix.width // form.group)
        panels = -(-matrix.out // PANEL_WIDTH)
        self._form = form
        self._scratch_row = groups * (form.group + 12)
        self._panels = torch.empty(panels * groups * form.group_bytes, dtype=torch.uint8)
        self._multipliers = torch.empty(panels * PANEL_WIDTH)
        first = 0
        for chunk in _whole_panels(matrix.chunks):
            self._pack(chunk, first)
            first += chunk.codes.shape[0]

    def _pack(self, chunk: IntegerWeight, first: int) -> None:
        form = self._form
        codes, scales = chunk.codes.contiguous(), _repeated(chunk.scales, form)
        floors = None if chunk.minimums is None else _repeated(chunk.minimums, form)
        self._tape.sink.integer_pack(
            self._panels.data_ptr(), self._multipliers.data_ptr(), codes.data_ptr(), scales.data_ptr(),
            0 if floors is None else floors.data_ptr(), *form.arguments, _FLIP if form.bits == 8 else 0, codes.shape[0], self._inputs, first,
        )  # fmt: skip

    def _multiply(self, output: Output, x: torch.Tensor) -> None:
        rows = x.shape[0]
        scratch = self._tape.scratch(rows * self._scratch_row)
        self._tape.sink.integer_linear(
            *output, x.data_ptr(), self._panels.data_ptr(), self._multipliers.data_ptr(), scratch, *self._form.arguments,
            rows, self._inputs, x.stride(0), DTYPES[x.dtype],
        )  # fmt: skip


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
