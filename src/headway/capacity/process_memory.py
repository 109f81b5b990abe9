"""Resident memory of a serving process beside weights, cache and activations.

Measured with torch 2.13 for CPUs and transformers 5.24 (SmolLM2, all-MiniLM-L6-v2, sparrow-nano): the resident set of an idle server
less its weights and committed cache. Tests compare with live processes.

Pages of the libraries' files count in a resident set too, as many as the page cache held in one piece when they were mapped: measured
95 MiB (libraries read long ago) to 221 MiB (just installed, after the first long prompt) for the same server. The kernel takes them
back when memory is short, so no limit is ever hit by them.
"""

from __future__ import annotations

from typing import Final

_MIB: Final = 1 << 20
MAPPED_BYTES: Final = 120 * _MIB  # of the two below: pages of files
SERVER_BYTES: Final = 258 * _MIB  # Python, torch, oneDNN, the HTTP application
WORKER_BYTES: Final = 278 * _MIB  # the same of the model runtime
ENTRY_BYTES: Final = 400  # of a tokenizer, per entry of its vocabulary
HUGE_PAGE: Final = 2 * _MIB
_PAGE: Final = 4096
_HUGE_FROM: Final = 4 * _MIB  # arrays from which on numpy asks for huge pages


def process_bytes(vocabulary: int, *, runtime: bool = False) -> int:
    """A server without a model; `runtime`: the model runtime instead of the engine."""
    return (WORKER_BYTES if runtime else SERVER_BYTES) + ENTRY_BYTES * vocabulary


def touched_cache_bytes(cache_bytes: int, layers: int, kv_heads: int, block_bytes: int) -> int:
    """Committed of a cache that nothing was written to but its null block, which is in each head's part of each layer.

    `block_bytes` is one block of one head, keys or values. Large arrays are committed by huge pages, of which an array that begins
    anywhere holds one less than its size suggests; the first head's part lies before the first of them.
    """
    if layers == 0:
        return 0
    array, parts = cache_bytes / layers, 2 * kv_heads
    if array < _HUGE_FROM:
        return min(cache_bytes, layers * parts * max(_PAGE, block_bytes))
    pages = min(parts - 1, max(0.0, array / HUGE_PAGE - 1))
    return min(cache_bytes, int(layers * (pages * max(HUGE_PAGE, block_bytes) + max(_PAGE, block_bytes))))
