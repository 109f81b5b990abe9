"""Weights that leave memory and come back to the same addresses: whoever points at them, recorded programs of kernels included, need not
know."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from headway.capacity.byte_text import byte_text
from headway.errors import CapacityError
from headway.host.page_release import file_ranges, release_pages, whole_pages

RESERVE_BYTES: Final = 1 << 30
"""So much of the disk stays free."""


class ParkedWeights:
    """The bytes of `pages` [start, end) of memory, one after the other in a file without a name: it is gone with the process."""

    def __init__(self, pages: Sequence[tuple[int, int]], file: IO[bytes]):
        self._pages = pages
        self._file = file

    @property
    def nbytes(self) -> int:
        return sum(end - start for start, end in self._pages)

    def bring_back(self) -> None:
        """Fill the memory again. Raises OSError; it may then be tried again."""
        self._file.seek(0)
        for start, end in self._pages:
            view = _bytes_at(start, end)
            if self._file.readinto(view) != len(view):  # type: ignore[attr-defined]
                raise OSError("the file of parked weights is shorter than it was written")
        self._file.close()


def park(ranges: Sequence[tuple[int, int]], folder: Path) -> ParkedWeights:
    """Write memory (address, bytes) to a file in `folder` and give its pages back. Nothing is given back unless all is written.

    Memory that is a mapping of a file is dropped only: its pages come back from there. Raises CapacityError when the disk is too full,
    OSError when it fails.
    """
    written, dropped = _pages(ranges)
    needed = sum(end - start for start, end in written)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed + RESERVE_BYTES:
        raise CapacityError(
            f"sleep level 1 writes {byte_text(needed)} of weights to {folder}, where {byte_text(free)} are free and"
            f" {byte_text(RESERVE_BYTES)} stay free", fix="Make room, set HEADWAY_CACHE to another disk, or use level 2.",
        )  # fmt: skip
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives until the weights are back
    try:
        for start, end in written:
            file.write(_bytes_at(start, end))
        file.flush()
    except BaseException:
        file.close()
        raise
    for start, end in (*written, *dropped):
        release_pages(start, end - start)
    return ParkedWeights(written, file)


def discard(ranges: Sequence[tuple[int, int]]) -> int:
    """Give the pages of memory back and forget what was in them; returns their bytes."""
    return sum(release_pages(address, nbytes) for address, nbytes in ranges)


def _pages(ranges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Whole pages that are memory of this process, and those that are of files."""
    mapped = file_ranges()
    starts = [start for start, _ in mapped]
    own, files = list[tuple[int, int]](), list[tuple[int, int]]()
    for address, nbytes in ranges:
        start, end = whole_pages(address, nbytes)
        if start < end:
            at = bisect_right(starts, start) - 1
            of_file = at >= 0 and end <= mapped[at][1]
            (files if of_file else own).append((start, end))
    return own, files


def _bytes_at(start: int, end: int) -> memoryview:
    return memoryview((ctypes.c_char * (end - start)).from_address(start)).cast("B")
