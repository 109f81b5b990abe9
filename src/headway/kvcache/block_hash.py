"""Chained hashes of full blocks: equal hash means equal tokens from the very first one, equal salt and equal adapter.

hash(block) = sha256(hash(parent) || tokens as 64-bit little-endian); the first parent is sha256 of the cache salt, and where an adapter
changes what is computed, sha256 of that and the adapter's digest. One hash therefore names the whole prefix, and a hit is found by walking
the chain until the first miss (vLLM: kv_cache_utils).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

BlockHash = bytes
NOTHING_ELSE: Final[Mapping[int, bytes]] = MappingProxyType({})


def root_hash(cache_salt: str | None, adapter: bytes | None = None) -> BlockHash:
    """The parent of first blocks. Requests with different salts, or adapters of different digests, never share a block."""
    salted = hashlib.sha256(b"headway-prefix\0" + (cache_salt or "").encode("utf-8", "surrogatepass")).digest()
    return salted if adapter is None else hashlib.sha256(salted + adapter).digest()


def extend_hashes(
    hashes: list[BlockHash], root: BlockHash, tokens: Sequence[int], block_size: int, contents: Mapping[int, bytes] = NOTHING_ELSE
) -> None:
    """Append to `hashes` those of all full blocks of `tokens` that it does not have yet. `contents`: number of a block -> what its tokens
    stand for beside what they are (digests of images), hashed with them."""
    for start in range(len(hashes) * block_size, len(tokens) - block_size + 1, block_size):
        parent = hashes[-1] if hashes else root
        words = array("q", tokens[start : start + block_size]).tobytes()
        hashes.append(hashlib.sha256(parent + words + contents.get(start // block_size, b"")).digest())
