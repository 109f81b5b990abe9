"""Writing one safetensors file, tensor by tensor: the whole file is never in memory, and its name means that it is whole."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

# torch dtype -> what safetensors calls it.
STORED: Final[Mapping[torch.dtype, str]] = {
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int8: "I8", torch.int32: "I32", torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor that is made when its turn comes."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    make: Callable[[], torch.Tensor]

    @property
    def nbytes(self) -> int:
        elements = 1
        for size in self.shape:
            elements *= size
        return elements * self.dtype.itemsize


def here(tensor: torch.Tensor) -> Planned:
    """One that is made already."""
    return Planned(tensor.dtype, tuple(tensor.shape), lambda: tensor)


def write_tensors(path: Path, tensors: Mapping[str, Planned]) -> int:
    """In the order of their names, wide dtypes first, so that every tensor is aligned. The size of the file in bytes. Raises OSError."""
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, planned in ordered:
        entries[name] = {"dtype": STORED[planned.dtype], "shape": planned.shape, "data_offsets": [end, end + planned.nbytes]}
        end += planned.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    growing = path.with_name(f"{path.name}.growing")
    with growing.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, planned in ordered:
            made = planned.make().contiguous()
            assert (made.dtype, tuple(made.shape)) == (planned.dtype, planned.shape)
            file.write(made.view(-1).view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())
    growing.replace(path)
    return 8 + len(text) + end
