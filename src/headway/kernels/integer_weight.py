"""Matrices of small integers with scales: the one form in which every integer format of checkpoints reaches the kernels.

w[o, i] = scales[o, i // group] * (codes[o, i] - offset) + minimums[o, i // group], all in float32.

Codes of 4 bits are uint8 0..15. A symmetric format (GGUF Q4_0) has offset 8 and no minimums; one with minimums (Q4_1, Q4_K) or zero points
(AWQ, GPTQ: minimum = -zero * scale) has offset 0. Codes of 8 bits are int8 and their offset is 0. A kernel that knows minimums only
takes `floors`, which are there for every form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch


@dataclass(frozen=True, slots=True)
class IntegerForm:
    """What is known of a matrix before it is read. `group` inputs share a scale; it divides the number of inputs."""

    bits: Literal[4, 8]
    group: int
    offset: Literal[0, 8] = 0
    minimums: bool = False

    def within(self, width: int) -> IntegerForm:
        """The form of `width` neighbouring inputs: one group where they are fewer than a group has."""
        return self if self.group <= width else replace(self, group=width)

    def joined(self, other: IntegerForm) -> IntegerForm:
        """The narrowest form that holds both exactly, for matrices that are fused: 4 bits become 8 beside 8, groups the largest that
        fit in both."""
        bits = max(self.bits, other.bits)
        same = self.offset == other.offset and self.minimums == other.minimums and self.bits == other.bits
        offset = self.offset if same else 0
        # Only codes of 8 bits can lose their offset without a minimum in its place.
        low = bits == 4 and not same
        return IntegerForm(bits, math.gcd(self.group, other.group), offset, self.minimums or other.minimums or low)


@dataclass(frozen=True, slots=True)
class IntegerWeight:
    """Rows of a matrix [out, in]. Large matrices come as several of these, one below the other, so that none exists whole with a byte
    for each of its codes.

    codes: uint8 [out, in] of 4 bits, int8 [out, in] of 8; scales: float32 [out, in / group]; minimums: the same, or None.
    """

    form: IntegerForm
    codes: torch.Tensor
    scales: torch.Tensor
    minimums: torch.Tensor | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for parts that do not belong together."""
        form, (out, width) = self.form, self.codes.shape
        wanted = (out, width // form.group)
        if width % form.group or self.codes.dtype != (torch.uint8 if form.bits == 4 else torch.int8) or (form.bits == 8 and form.offset):
            raise ValueError(f"codes {self.codes.dtype} {list(self.codes.shape)} are not of the form {form}")
        if (self.minimums is not None) != form.minimums:
            raise ValueError(f"minimums must be {'there' if form.minimums else 'left out'} in the form {form}")
        for part in (self.scales, self.minimums):
            if part is not None and (tuple(part.shape) != wanted or part.dtype != torch.float32):
                raise ValueError(f"scales and minimums must be float32 {list(wanted)}, got {part.dtype} {list(part.shape)}")

    @property
    def floors(self) -> torch.Tensor:
        """float32 [out, in / group]: what a code of 0 means, so that w = scales * codes + floors in every form."""
        low = self.scales * -float(self.form.offset)
        return low if self.minimums is None else low.add_(self.minimums)

    def dequantized(self) -> torch.Tensor:
        """float32 [out, in]: what the matrix is."""
        out, width = self.codes.shape
        weight = (self.codes.float() - float(self.form.offset)).view(out, -1, self.form.group) * self.scales[..., None]
        if self.minimums is not None:
            weight += self.minimums[..., None]
        return weight.view(out, width)

    def taken(self, rows: torch.Tensor) -> IntegerWeight:
        """The rows of these numbers (int64), in this order."""
        minimums = None if self.minimums is None else self.minimums[rows]
        return replace(self, codes=self.codes[rows], scales=self.scales[rows], minimums=minimums)

    def folded(self, width: int) -> IntegerWeight:
        """Short rows (blocks of a row) one after the other as rows of `width`."""
        groups = width // self.form.group
        minimums = None if self.minimums is None else self.minimums.reshape(-1, groups)
        return replace(self, codes=self.codes.reshape(-1, width), scales=self.scales.reshape(-1, groups), minimums=minimums)

    def as_form(self, form: IntegerForm) -> IntegerWeight:
        """The same matrix in a wider form, one that `IntegerForm.joined` makes of this one and others."""
        if form == self.form:
            return self
        scales, minimums = self.scales, self.minimums
        codes = self.codes
        if form.bits == 8 and self.form.bits == 4:
            codes = codes.view(torch.int8) - self.form.offset
        elif form.offset != self.form.offset:
            minimums = self.floors
        repeats = self.form.group // form.group
        scales = scales.repeat_interleave(repeats, 1)
        if form.minimums:
            minimums = torch.zeros_like(scales) if minimums is None else minimums.repeat_interleave(repeats, 1)
        return IntegerWeight(form, codes, scales, minimums)


def stacked(parts: Sequence[IntegerWeight]) -> IntegerWeight:
    """Of one form, one below the other."""
    minimums = [part.minimums for part in parts if part.minimums is not None]
    return IntegerWeight(
        parts[0].form, torch.cat([part.codes for part in parts]), torch.cat([part.scales for part in parts]),
        torch.cat(minimums) if minimums else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class IntegerMatrix:
    """A whole matrix [out, in] of one form, for a kernel to pack: its rows are read while `chunks` is walked, once."""

    form: IntegerForm
    out: int
    width: int
    chunks: Iterable[IntegerWeight]
