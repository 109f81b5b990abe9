"""Giving pages of memory that is still reserved back to the system, without freeing it."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from pathlib import Path
from typing import Any

_DONT_NEED = 4  # MADV_DONTNEED of Linux


def whole_pages(address: int, nbytes: int) -> tuple[int, int]:
    """[start, end) of the pages that lie completely inside the memory; start >= end when there are none."""
    page = mmap.PAGESIZE
    return -(-address // page) * page, (address + nbytes) // page * page


def release_pages(address: int, nbytes: int) -> int:
    """Drop the whole pages inside [address, address + nbytes); returns their bytes.

    Private memory without a file reads as zeros afterwards, a private mapping of a file as the file; addresses stay valid. Raises OSError.
    """
    start, end = whole_pages(address, nbytes)
    if start >= end:
        return 0
    if _libc().madvise(start, end - start, _DONT_NEED) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"madvise of {end - start} bytes failed")
    return end - start


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def file_ranges(maps: str | None = None) -> list[tuple[int, int]]:
    """[start, end) of the memory of this process that is backed by a file, in order; `maps` instead of /proc/self/maps."""
    lines = (Path("/proc/self/maps").read_text() if maps is None else maps).splitlines()
    found = []
    for line in lines:
        span, _, _, _, inode, *_ = line.split()
        if inode != "0":
            start, _, end = span.partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found
