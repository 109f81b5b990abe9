"""The part of a packed weight that one of several processes reads."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from headway.artifacts.card import TensorInfo
from headway.artifacts.sliced_tensor import Ranges, sliced
from headway.quantization.packed_weight import Axis, PackedTensor, Parts

_log = logging.getLogger(__name__)


def sliced_packed(weight: PackedTensor, kept: Sequence[Ranges]) -> PackedTensor:
    """`kept`: rows and columns of `weight` [out, in], in their order. Where the packing lets them be cut, nothing else is read, and the
    form stays; else all of the weight is read and unpacked, one weight at a time, and what is kept are plain numbers."""
    rows, columns = kept
    shape = (sum(map(len, rows)), sum(map(len, columns)))
    try:
        stored = _stored(weight, kept)
    except ValueError as error:
        _log.info("%s (%s) cannot be divided as it is packed, so it is unpacked: %s", weight.name, weight.dtype, error)
        return _unpacked_first(weight, kept, shape)
    integers = weight.layout.integers
    if integers is not None:
        integers = replace(integers, form=integers.form.within(shape[1]))
    layout = replace(weight.layout, integers=integers)
    return replace(weight, shape=shape, layout=layout, stored=stored, nbytes=sum(part.nbytes for part in stored.values()))


def _stored(weight: PackedTensor, kept: Sequence[Ranges]) -> dict[str, TensorInfo]:
    """Raises ValueError where the packing does not let them be cut."""
    if weight.layout.whole or not weight.layout.divisible:
        raise ValueError("its parts are not those of a smaller matrix")
    stored = {}
    for ending, rule in weight.layout.parts.items():
        part = weight.stored[ending]
        if rule.axes:
            cuts = [_entries(axis, weight, kept, size) for axis, size in zip(rule.axes, part.shape, strict=True)]
            part = part if cuts == [(range(size),) for size in part.shape] else sliced(part, cuts)
        stored[ending] = part
    return stored


def _entries(axis: Axis, weight: PackedTensor, kept: Sequence[Ranges], size: int) -> Ranges:
    if axis.along == "whole":
        return (range(size),)
    end, ranges = weight.shape[axis.along == "in"], kept[axis.along == "in"]
    for each in ranges:
        if each.stop != end and each.stop * axis.entries % axis.values:
            raise ValueError(f"row or column {each.stop} does not end an entry of {axis.values}/{axis.entries}")
    return tuple(range(*axis.cut(each.start, each.stop)) for each in ranges)


def _unpacked_first(weight: PackedTensor, kept: Sequence[Ranges], shape: tuple[int, int]) -> PackedTensor:
    """For what cannot be unpacked a piece at a time: all of it is, and the rest dropped."""
    rows, columns = (torch.cat([torch.arange(each.start, each.stop) for each in ranges]) for ranges in kept)
    height, unpack = weight.shape[0], weight.layout.dequantize

    def dequantize(parts: Parts, wanted: range) -> torch.Tensor:
        return unpack(parts, range(height))[rows[wanted.start : wanted.stop]][:, columns]

    layout = replace(weight.layout, dequantize=dequantize, integers=None, whole=True)
    return replace(weight, shape=shape, layout=layout, nbytes=weight.nbytes * math.prod(shape) // max(math.prod(weight.shape), 1))
