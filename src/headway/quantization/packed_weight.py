"""A weight matrix [out, in] that a checkpoint stores as several tensors: what they are, how they split, how they are unpacked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import torch

from headway.artifacts.card import TensorInfo
from headway.errors import ArtifactError
from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.stored_as import Needs

Along = Literal["out", "in", "whole"]
Parts = Mapping[str, torch.Tensor]
Dequantize = Callable[[Parts, range], torch.Tensor]  # stored parts of these output rows -> float32 [rows, in]

FLOATS: Final = ("F16", "BF16", "F32")
_FIX: Final = "Download the file again, or use the quantization settings that belong to these weights."


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a stored tensor. Along "out" or "in", `entries` of it hold `values` rows or columns of the weight; the last
    ones may be short. "whole": `entries` in all, whatever the weight's size."""

    along: Along
    values: int = 1
    entries: int = 1

    def size(self, shape: tuple[int, int]) -> int:
        if self.along == "whole":
            return self.entries
        return math.ceil(shape[self.along == "in"] * self.entries / self.values)

    def cut(self, start: int, stop: int) -> tuple[int, int]:
        """Entries of `start:stop` of the weight. Raises ValueError where they share an entry with others."""
        if start * self.entries % self.values:
            raise ValueError(f"row or column {start} does not begin an entry of {self.values}/{self.entries}")
        return start * self.entries // self.values, math.ceil(stop * self.entries / self.values)


WHOLE: Final = Axis("whole")


@dataclass(frozen=True, slots=True)
class Part:
    """A stored tensor of a weight: its dtypes, and what each of its dimensions runs along. This is also the rule by which tensor
    parallelism splits it: dimensions along what is split are cut, everything else stays whole on every rank."""

    dtypes: tuple[str, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Integers:
    """How a weight is read as integers. `read`: stored parts of these output rows -> integers [rows, in] of `form`, which mean the same
    numbers as the dequantized ones."""

    form: IntegerForm
    read: Callable[[Parts, range], IntegerWeight]


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """`title` names the format with every setting that changes numbers. `parts`: ending of the tensor's name -> rule. `integers` is None
    for numbers that are no integers times scales of neighbouring inputs. `divisible`: whether some of its rows and columns are stored as a
    smaller matrix would be."""

    title: str
    parts: Mapping[str, Part]
    dequantize: Dequantize
    whole: bool = False  # cannot be unpacked a piece at a time
    needs: Needs | None = None
    integers: Integers | None = None
    divisible: bool = True

    @property
    def step(self) -> int:
        """Output rows that can be cut apart are multiples of this."""
        return math.lcm(*(_step(axis) for part in self.parts.values() for axis in part.axes if axis.along == "out"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedTensor(TensorInfo):
    """The weight as a model sees it: `shape` is [out, in], `dtype` the title of the layout, `nbytes` those of all parts."""

    layout: PackedLayout
    stored: Mapping[str, TensorInfo] = field(default_factory=dict)


def packed_tensor(module: str, stored: Mapping[str, TensorInfo], layout: PackedLayout, shape: tuple[int, int]) -> PackedTensor:
    """Check every part against the weight's shape. Raises ArtifactError (`packed_part_missing`, `packed_dtype`, `packed_shape`)."""
    for ending, rule in layout.parts.items():
        part = stored.get(ending)
        if part is None:
            raise ArtifactError(
                f"{module} is stored as {layout.title}, which needs {module}.{ending}; the checkpoint has {', '.join(sorted(stored))}",
                reason="packed_part_missing", param=f"{module}.{ending}", fix=_FIX,
            )  # fmt: skip
        if part.dtype not in rule.dtypes:
            raise ArtifactError(
                f"{part.name} is stored as {part.dtype}; {layout.title} has it as {' or '.join(rule.dtypes)}",
                reason="packed_dtype", param=part.name, fix=_FIX,
            )  # fmt: skip
        expected = tuple(axis.size(shape) for axis in rule.axes)
        if part.shape != expected:
            raise ArtifactError(
                f"{part.name} has shape {list(part.shape)}; for a weight of {shape[0]} x {shape[1]} stored as {layout.title} it must be"
                f" {list(expected)}",
                reason="packed_shape", param=part.name, fix=_FIX,
            )  # fmt: skip
    kept = {ending: stored[ending] for ending in layout.parts}
    first = next(iter(kept.values()))
    return PackedTensor(
        name=f"{module}.weight", dtype=layout.title, shape=shape, nbytes=sum(part.nbytes for part in kept.values()),
        file=first.file, offset=first.offset, layout=layout, stored=kept,
    )  # fmt: skip


def shard(layout: PackedLayout, parts: Parts, along: Literal["out", "in"], start: int, stop: int) -> dict[str, torch.Tensor]:
    """The stored tensors of rows ("out") or columns ("in") `start:stop` of the weight, as views. Raises ValueError where the packing
    does not let them be cut there."""
    cut = dict(parts)
    for ending, rule in layout.parts.items():
        for dim, axis in enumerate(rule.axes):
            if axis.along == along:
                first, end = axis.cut(start, stop)
                cut[ending] = cut[ending].narrow(dim, first, end - first)
    return cut


def bad_values(title: str, problem: str, fix: str = _FIX) -> ArtifactError:
    """For values of stored tensors that the format does not allow; whoever knows the name of the weight adds it."""
    return ArtifactError(f"{title}: {problem}", reason="packed_values", fix=fix)


def finite(title: str, scales: torch.Tensor) -> torch.Tensor:
    """`scales` as float32. Raises ArtifactError (`packed_values`) for infinities and NaN."""
    wide = scales.float()
    if not bool(torch.isfinite(wide).all()):
        raise bad_values(title, "scales are infinite or not numbers")
    return wide


def _step(axis: Axis) -> int:
    return axis.values // math.gcd(axis.values, axis.entries)
