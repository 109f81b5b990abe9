"""Reading a file of prepared weights: all of it is checked without reading the weights, then it is mapped."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import ArtifactError
from headway.models.fill import Stack
from headway.models.prepared.file_layout import ALIGNMENT, Layout, layout, name_of

TIME_KEY: Final = "written_ns"


class MappedStacks:
    """`mapped(stack)` is the tensor of a stack, in pages that all processes on this host share; whoever writes to it writes to a
    copy of his own. When the next module is asked for, the pages of the last one leave this process, and come back by themselves
    if somebody reads them: a module that packs its weights needs them no more."""

    def __init__(self, mapped: mmap.mmap, places: Layout):
        self._mapped, self._places = mapped, places
        self._read: list[Stack] = []

    def __call__(self, stack: Stack) -> torch.Tensor:
        if self._read and self._read[-1].module != stack.module:
            self.let_go()
        self._read.append(stack)
        place = self._places.places[name_of(stack)]
        flat = torch.frombuffer(self._mapped, dtype=stack.dtype, count=place.nbytes // stack.dtype.itemsize, offset=place.offset)
        # Kernels may round differently where memory begins elsewhere; tensors of torch's own always begin so.
        return (flat if flat.data_ptr() % ALIGNMENT == 0 else flat.clone()).view(stack.shape)

    def let_go(self) -> None:
        """Drop the whole pages inside what was read."""
        for stack in self._read:
            place = self._places.places[name_of(stack)]
            first = -(-place.offset // mmap.PAGESIZE) * mmap.PAGESIZE
            length = (place.offset + place.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
            if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
                self._mapped.madvise(mmap.MADV_DONTNEED, first, length)
        self._read.clear()


def mapped_stacks(path: Path, stacks: Sequence[Stack]) -> MappedStacks:
    """Raises ArtifactError (`truncated`, `header_json`, ..., `prepared_changed`) for a file that is not as it was written, OSError
    when there is none or it cannot be read."""
    status = path.stat()
    header = read_safetensors_header(path)
    expected = layout(stacks, dict(header.metadata))
    if header.metadata.get(TIME_KEY) != str(status.st_mtime_ns):
        raise _changed(path, "it was written to after it was finished")
    with path.open("rb") as file:
        if file.read(len(expected.head)) != expected.head or status.st_size != expected.size:
            raise _changed(path, "it holds other tensors than its name says")
        return MappedStacks(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), expected)


def _changed(path: Path, why: str) -> ArtifactError:
    return ArtifactError(f"{path}: {why}", reason="prepared_changed", param=str(path), fix="It is made again by itself.")
