"""Asking the system for huge pages under the weights.

A matrix of a small model lies on hundreds of 4 KiB pages, and inside a virtual machine every miss of the page table
cache walks two tables. Measured (SmolLM2 in bf16, one token): all linear layers 12.3 ms before and 10.3 ms after.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

HUGE: Final = 2 << 20
_ADVISE: Final = 14  # MADV_HUGEPAGE
_COLLAPSE: Final = 25  # MADV_COLLAPSE, Linux 6.1
_MAPS: Final = Path("/proc/self/maps")
_ANONYMOUS: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0\s*(\[heap\])?$")


def use_huge_pages() -> int:
    """Turn the process's committed private memory into huge pages where the kernel can; returns the bytes turned.

    Call it once the weights are loaded and before memory is reserved that is to be committed lazily: a huge page
    commits whole. Does nothing where the system has no huge pages or is not Linux.
    """
    if not _MAPS.exists():
        return 0
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    turned = 0
    for start, end in anonymous_ranges(_MAPS.read_text().splitlines()):
        if madvise(start, end - start, _ADVISE) == 0:
            turned += sum(HUGE for page in range(start, end, HUGE) if madvise(page, HUGE, _COLLAPSE) == 0)
    return turned


def anonymous_ranges(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """[start, end) of writable private memory without a file, in whole huge pages, from lines of /proc/self/maps."""
    for line in maps:
        if found := _ANONYMOUS.match(line.rstrip()):
            start, end = -(-int(found[1], 16) // HUGE) * HUGE, int(found[2], 16) // HUGE * HUGE
            if start < end:
                yield start, end
