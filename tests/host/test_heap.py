"""Giving freed memory back."""

from __future__ import annotations

import subprocess
import sys

# Blocks that are too small for the system to take back one by one, with one in between that stays.
CODE = """
import ctypes, psutil
from headway.host.heap import release_free_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
rss = psutil.Process().memory_info
blocks = [libc.malloc(60_000) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
full = rss().rss
for block in blocks[:-1]:
    libc.free(block)
freed = rss().rss
done = release_free_memory()
print(full - freed < 20 << 20, done, freed - rss().rss > 40 << 20)
"""


def test_freed_blocks_leave_the_process() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "True", "True"]
