"""Weights stored as numbers that torch has a dtype for, beside scales: 8-bit floats and integers, one number for each weight.

w = (q - z) s with a scale for the whole matrix, for each output, for groups of inputs or for blocks [rows, columns].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from headway.artifacts.card import TensorInfo
from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim, invalid
from headway.quantization.packed_weight import FLOATS, Axis, Integers, PackedLayout, Part, Parts, finite

FLOAT8: Final = ("F8_E4M3", "F8_E5M2")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows and columns that share a scale; None = all of them."""

    rows: int | None
    columns: int | None

    def __str__(self) -> str:
        if self.rows is None:
            return "one scale"
        if self.columns is None:
            return "a scale for each output" if self.rows == 1 else f"scales of {self.rows} x all"
        return f"groups of {self.columns}" if self.rows == 1 else f"blocks of {self.rows} x {self.columns}"


def sides_of(claim: Claim, settings: Claim, name: str) -> Blocks:
    """The field `name`, [rows, columns]. Raises ArtifactError (`invalid_quantization`)."""
    size = settings.get(name)
    if not isinstance(size, list) or len(size) != 2 or not all(type(each) is int and each > 0 for each in size):
        raise invalid(claim, f"{name} must be two positive numbers, got {size!r:.40}")
    return Blocks(size[0], size[1])


def scaled_layout(
    title: str, stored: Stored, blocks: Blocks, dtypes: tuple[str, ...], *, scale: str, zero: str | None = None
) -> tuple[PackedLayout, tuple[int, int]]:
    """`scale` and `zero` are the endings of their names. Zero points have the dtype of the weight."""
    weight = stored["weight"]
    shape = (weight.shape[0], weight.shape[1]) if len(weight.shape) == 2 else (0, 0)
    parts = {"weight": Part(dtypes, (Axis("out"), Axis("in")))}
    for ending, kinds in ((scale, FLOATS), (zero, dtypes)):
        if ending is not None:
            parts[ending] = Part(kinds, scale_axes(stored.get(ending), blocks))
    named = f"{title}, {blocks}{', zero points' if zero else ''}"

    def dequantize(found: Parts, rows: range) -> torch.Tensor:
        out = found["weight"].float()
        if zero is not None:
            out -= spread(found[zero].float(), out.shape, blocks)
        return out.mul_(spread(finite(named, found[scale]), out.shape, blocks))

    return PackedLayout(
        named, parts, dequantize, needs="fp8" if set(dtypes) <= set(FLOAT8) else None,
        integers=_integers(named, blocks, shape[1], scale, zero) if dtypes == ("I8",) else None,
    ), shape  # fmt: skip


def _integers(title: str, blocks: Blocks, width: int, scale: str, zero: str | None) -> Integers | None:
    """None for blocks of several outputs, and for groups that do not fill the width."""
    group = width if blocks.columns is None else blocks.columns
    if blocks.rows not in (None, 1) or not group or width % group:
        return None
    form = IntegerForm(8, group, minimums=zero is not None)

    def read(found: Parts, rows: range) -> IntegerWeight:
        codes = found["weight"]
        own = form.within(codes.shape[1])
        groups = codes.shape[1] // own.group
        scales = finite(title, found[scale]).reshape(-1, groups).expand(len(rows), -1)
        minimums = None if zero is None else found[zero].float().reshape(-1, groups) * -scales
        return IntegerWeight(own, codes.clone(), scales, minimums)

    return Integers(form, read)


def scale_axes(scales: TensorInfo | None, blocks: Blocks) -> tuple[Axis, ...]:
    """One scale may be stored with any number of dimensions of size 1, one for each output with or without a second, those of blocks
    with a dimension of size 1 after each of the two."""
    dims = 2 if scales is None else len(scales.shape)
    one = Axis("whole")
    if blocks.rows is None:
        return (one,) * dims
    rows = Axis("out", blocks.rows)
    if blocks.columns is None:
        return (rows,) if dims == 1 else (rows, one)
    columns = Axis("in", blocks.columns)
    return (rows, one, columns, one) if dims == 4 else (rows, columns)


def spread(scales: torch.Tensor, shape: torch.Size, blocks: Blocks) -> torch.Tensor:
    """Scales [blocks down, blocks across] -> what multiplies with [rows, columns]."""
    if blocks.rows is None:
        return scales.reshape(())
    flat = scales.reshape(math.ceil(shape[0] / blocks.rows), -1)
    tall = flat if blocks.rows == 1 else flat.repeat_interleave(blocks.rows, 0)[: shape[0]]
    return tall if blocks.columns is None else tall.repeat_interleave(blocks.columns, 1)[:, : shape[1]]
