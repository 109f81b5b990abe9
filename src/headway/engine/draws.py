"""Uniform random numbers that depend on nothing but who draws and for which token.

There is no generator that moves on: a token that is drawn again after a preemption or a failed step gets the same number,
and what else runs in the batch cannot matter.
"""

from __future__ import annotations

import hashlib
import struct


def stream(server_seed: int, request_seed: int | None, arrival: int) -> bytes:
    """The key of a sequence's numbers: its own seed, or without one the server's seed and the sequence's place in the order
    of arrival. All are 64-bit integers."""
    if request_seed is not None:
        return b"request" + struct.pack("<q", request_seed)
    return b"arrival" + struct.pack("<qq", server_seed, arrival)


def uniform(key: bytes, index: int) -> float:
    """Number `index` of the stream `key`, in [0, 1) with 53 bits."""
    digest = hashlib.blake2b(struct.pack("<q", index), digest_size=8, key=key).digest()
    return float(int.from_bytes(digest, "little") >> 11) * 2.0**-53
