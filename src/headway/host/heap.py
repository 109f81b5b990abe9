"""Memory that the C library's allocator keeps after it was freed, and giving it back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def release_free_memory() -> bool:
    """Give the pages of freed memory back; True if some were. Takes milliseconds, during which allocations wait.

    glibc keeps freed blocks below 32 MiB for later use, and batches of ever other sizes leave holes of ever other sizes:
    without this a server that has been busy holds some hundreds of MiB that nothing is in. Other C libraries have no such
    call; then nothing happens.
    """
    trim = _malloc_trim()
    return trim is not None and trim(0) == 1


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
