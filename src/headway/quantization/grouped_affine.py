"""w = (q - z) s, with one scale and one zero point for a group of inputs: what most integer formats share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.packed_weight import Integers, PackedLayout, Part, Parts


@dataclass(frozen=True, slots=True)
class GroupedAffine:
    """`q` uint8 [rows, in]; `scales` float32 [rows, groups], `zeros` the same or one number. `group` is how many neighbouring inputs share
    a scale (the last group may be short), or the group of each input, int64 [in]."""

    q: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | int
    group: int | torch.Tensor

    def dequantized(self) -> torch.Tensor:
        """float32 [rows, in]."""
        (rows, width), zeros, group = self.q.shape, self.zeros, self.group
        out = self.q.float()
        if isinstance(group, int) and width % group == 0:
            blocks = out.view(rows, -1, group)
            blocks -= zeros[..., None] if isinstance(zeros, torch.Tensor) else zeros
            blocks *= self.scales[..., None]
            return out
        index = torch.arange(width) // group if isinstance(group, int) else group
        out -= zeros[:, index] if isinstance(zeros, torch.Tensor) else zeros
        return out.mul_(self.scales[:, index])

    def integers(self, form: IntegerForm, bits: int) -> IntegerWeight:
        """`form` is that of `affine_layout`. Codes of 8 bits, and symmetric ones, are moved to where their form has them."""
        form = form.within(self.q.shape[1])
        moved = form.offset + (0 if form.bits == 4 and form.minimums else -(1 << bits - 1))
        codes = self.q + moved  # uint8 goes round
        minimums = (-moved - self.zeros) * self.scales if form.minimums else None
        return IntegerWeight(form, codes if form.bits == 4 else codes.view(torch.int8), self.scales.contiguous(), minimums)


def affine_layout(
    title: str, parts: dict[str, Part], read: Callable[[Parts, range], GroupedAffine], *, bits: int, width: int, group: int | None,
    symmetric: bool,
) -> PackedLayout:  # fmt: skip
    """Of weights of `bits` that `read` finds in stored parts. `group` is None where inputs belong to groups out of order. `symmetric`: all
    zero points are 2^(bits - 1)."""
    integers = None
    if group is not None and group > 0 and width % group == 0:
        wide = bits > 4
        form = IntegerForm(8 if wide else 4, group, 8 if symmetric and not wide else 0, not symmetric)
        integers = Integers(form, lambda found, rows: read(found, rows).integers(form, bits))
    return PackedLayout(title, parts, lambda found, rows: read(found, rows).dequantized(), integers=integers)
