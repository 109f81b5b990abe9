"""Rounding a matrix to the numbers that a format holds, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import torch

from headway.compression.method import Method

MOST_FP8: Final = 448.0  # of e4m3


@dataclass(frozen=True, slots=True)
class Rounded:
    """w = (numbers - zeros) scales. `numbers` int8 or float8 [out, in]; `scales` float32 [out, groups], already rounded to the dtype
    that stores them; `zeros` int8 [out, groups], or None where they are all 0. Neighbouring in / groups inputs share a scale."""

    numbers: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None

    def weight(self) -> torch.Tensor:
        """float32 [out, in]: what a reader makes of it."""
        blocks = self.numbers.float().view(*self.scales.shape, -1)
        if self.zeros is not None:
            blocks = blocks - self.zeros.float()[..., None]
        return (blocks * self.scales[..., None]).flatten(1)

    def rows(self, start: int, stop: int) -> Rounded:
        return Rounded(self.numbers[start:stop], self.scales[start:stop], None if self.zeros is None else self.zeros[start:stop])


@dataclass(frozen=True, slots=True)
class Grid:
    """What a method can store. `group` None = a scale for each output; `scale_dtype` is the one that scales are stored in."""

    bits: int
    symmetric: bool
    group: int | None
    scale_dtype: torch.dtype
    floats: bool = False

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def scales_of(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Of groups of `weight` [out, in]: scales float32 [out, groups] and zeros int8 (None if symmetric), from the smallest and the
        largest weight. 0 is always a number of the grid. All scales are finite, and none is 0."""
        blocks = weight.reshape(len(weight), -1, self.group or weight.shape[1])
        if self.symmetric:
            # Of 2^bits numbers one more is negative, so 7.5 steps reach the largest of 4 bits (as compressed-tensors has it).
            most = MOST_FP8 if self.floats else 127.0 if self.bits == 8 else self.high + 0.5
            return self._stored(blocks.abs().amax(-1) / most), None
        least, most_of = blocks.amin(-1).clamp_max(0.0), blocks.amax(-1).clamp_min(0.0)
        scales = self._stored((most_of - least) / (self.high - self.low))
        zeros = (self.low - least / scales).round().clamp(self.low, self.high).to(torch.int8)
        return scales, zeros

    def _stored(self, scales: torch.Tensor) -> torch.Tensor:
        """As the file holds them: infinite or 0 in its dtype would lose the group."""
        limits = torch.finfo(self.scale_dtype)
        stored = scales.clamp(limits.tiny, limits.max).to(self.scale_dtype).float()
        return torch.where(scales > 0, stored, 1.0)

    def numbers_of(self, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None) -> torch.Tensor:
        """The nearest numbers. `weight` [out, groups, any], or [out, any] with scales [out, 1]."""
        scaled = weight / scales[..., None] if weight.dim() == 3 else weight / scales
        if self.floats:
            return scaled.clamp(-MOST_FP8, MOST_FP8).to(torch.float8_e4m3fn)
        if zeros is not None:
            scaled = scaled + (zeros.float()[..., None] if weight.dim() == 3 else zeros.float())
        return scaled.round().clamp(self.low, self.high).to(torch.int8)


def grid_of(method: Method, group: int | None, dtype: torch.dtype) -> Grid:
    """`dtype` is that of the tensors that stay dense; scales of 8-bit formats are float32, those of groups take it."""
    return Grid(method.bits, method.symmetric, group, dtype if method.grouped else torch.float32, method.kind == "float")


def nearest(weight: torch.Tensor, grid: Grid) -> Rounded:
    """Each weight by itself. `weight` float32 [out, in], in a multiple of the group."""
    scales, zeros = grid.scales_of(weight)
    numbers = grid.numbers_of(weight.reshape(*scales.shape, -1), scales, zeros)
    return Rounded(numbers.flatten(1), scales, zeros)


def reordered(rounded: Rounded, order: torch.Tensor) -> Rounded:
    """With outputs in another order."""
    return replace(
        rounded, numbers=rounded.numbers[order], scales=rounded.scales[order], zeros=None if rounded.zeros is None else rounded.zeros[order]
    )
