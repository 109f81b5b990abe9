"""Resident memory of a serving process beside weights, cache and activations.

Measured with torch 2.13 for CPUs and transformers 5.24 (SmolLM2, all-MiniLM-L6-v2, sparrow-nano): the resident set of an idle server
less its weights and committed cache. Tests compare with live processes.
"""

from __future__ import annotations

from typing import Final

_MIB: Final = 1 << 20
SERVER_BYTES: Final = 316 * _MIB  # Python, torch, oneDNN, the HTTP application
WORKER_BYTES: Final = 278 * _MIB  # the same of the model runtime
ENTRY_BYTES: Final = 400  # of a tokenizer, per entry of its vocabulary
HUGE_PAGE: Final = 2 * _MIB
_HUGE_FROM: Final = 4 * _MIB  # arrays from which on numpy asks for huge pages


def process_bytes(vocabulary: int, *, runtime: bool = False) -> int:
    """A server without a model; `runtime`: the model runtime instead of the engine."""
    return (WORKER_BYTES if runtime else SERVER_BYTES) + ENTRY_BYTES * vocabulary


def touched_cache_bytes(cache_bytes: int, layers: int, kv_heads: int, block_bytes: int) -> int:
    """Committed of a cache that nothing was written to but its null block, which is in each head's part of each layer.

    `block_bytes` is one block of one head, keys or values. Large arrays are committed by huge pages; the beginning of an array
    is not aligned to one.
    """
    if layers == 0:
        return 0
    page = HUGE_PAGE if cache_bytes // layers >= _HUGE_FROM else 4096
    return min(cache_bytes, layers * (2 * kv_heads - 1) * max(page, block_bytes) + layers * block_bytes)
