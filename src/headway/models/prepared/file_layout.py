"""Where each stack lies in a file of prepared weights: a safetensors file whose tensors begin where vector instructions like it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.models.fill import Stack
from headway.quantization.dense import DENSE_DTYPES

ALIGNMENT: Final = 64
_PAGE: Final = 4096
_STORED: Final = {dtype: name for name, dtype in DENSE_DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """`offset` is absolute in the file, both in bytes."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """`head` is everything before the tensors."""

    head: bytes
    places: dict[str, Place]
    size: int


def name_of(stack: Stack) -> str:
    """Of the tensor in the file."""
    return f"{stack.module}.{stack.kind}"


def layout(stacks: Sequence[Stack], metadata: dict[str, str]) -> Layout:
    """The format allows no gaps, so tensors whose sizes keep the alignment come first, then the odd ones, wide types first."""
    entries: dict[str, object] = {"__metadata__": metadata}
    places: dict[str, Place] = {}
    end = 0
    for stack in sorted(stacks, key=lambda each: (_nbytes(each) % ALIGNMENT != 0, -each.dtype.itemsize)):
        nbytes = _nbytes(stack)
        entries[name_of(stack)] = {"dtype": _STORED[stack.dtype], "shape": stack.shape, "data_offsets": [end, end + nbytes]}
        places[name_of(stack)] = Place(end, nbytes)
        end += nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _PAGE)
    start = 8 + len(text)
    return Layout(
        struct.pack("<Q", len(text)) + text,
        {name: Place(start + place.offset, place.nbytes) for name, place in places.items()},
        start + end,
    )


def _nbytes(stack: Stack) -> int:
    elements = 1
    for dim in stack.shape:
        elements *= dim
    return elements * stack.dtype.itemsize
