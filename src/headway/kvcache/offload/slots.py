"""Where images of blocks are kept: numbered slots of equal size, in memory or in a file that has no name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from headway.host.page_release import release_pages
from headway.kvcache.offload.block_images import Image

OnImage = Callable[[Image], None]


class Slots(Protocol):
    """`store` hands out the place of a slot to be filled, `fetch` shows what was stored there. Both may raise OSError."""

    @property
    def count(self) -> int: ...

    def store(self, slot: int, fill: OnImage) -> None: ...

    def fetch(self, slot: int, use: OnImage) -> None: ...

    def release(self) -> None:
        """Give memory and disk back; what was stored is gone."""


class MemorySlots:
    """Memory is committed when a slot is first filled."""

    def __init__(self, count: int, nbytes: int):
        self.count = count
        self._rows = np.zeros((count, nbytes), np.uint8)  # from calloc: untouched pages cost nothing

    def store(self, slot: int, fill: OnImage) -> None:
        fill(self._rows[slot])

    def fetch(self, slot: int, use: OnImage) -> None:
        use(self._rows[slot])

    def release(self) -> None:
        release_pages(self._rows.ctypes.data, self._rows.nbytes)


class FileSlots:
    """A file without a name in `folder`: it is gone with the process, however that ends. It is read and written, not mapped, so that a disk
    that is full or broken raises OSError instead of ending the process with a signal."""

    def __init__(self, count: int, nbytes: int, folder: Path):
        """Raises OSError when no file can be made in `folder`."""
        self.count = count
        self._nbytes = nbytes
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - it lives as long as this object
        self._image = np.empty(nbytes, np.uint8)

    def store(self, slot: int, fill: OnImage) -> None:
        fill(self._image)
        written = os.pwrite(self._file.fileno(), self._image.data, slot * self._nbytes)
        if written != self._nbytes:
            raise OSError(f"{written} of {self._nbytes} bytes were written")

    def fetch(self, slot: int, use: OnImage) -> None:
        read = os.preadv(self._file.fileno(), [self._image.data], slot * self._nbytes)
        if read != self._nbytes:
            raise OSError(f"{read} of {self._nbytes} bytes were read")
        use(self._image)

    def release(self) -> None:
        self._file.truncate(0)
