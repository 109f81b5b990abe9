"""TokenChain: the beginnings of one prompt as keys, block by block. An equal key means equal tokens from the very first one.

An engine's own hashes cannot be made here (vLLM's depend on its version and on a seed), but its events carry the tokens, and a key is made
of these alone, so that engines of all kinds are compared by what they hold.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

Key = bytes
ROOT: Key = b""
MOST_TOKENS = 65536  # of a prompt that are looked at


def next_key(parent: Key, tokens: Sequence[int]) -> Key:
    """16 bytes: of the chain `parent` and the tokens of one more block, each below 2**32."""
    return hashlib.blake2b(parent + array("I", tokens).tobytes(), digest_size=16).digest()


class TokenChain:
    def __init__(self, tokens: Sequence[int]):
        self.length = len(tokens)
        self._tokens = tokens[:MOST_TOKENS]
        self._keys: dict[int, list[Key]] = {}

    def keys(self, block_size: int) -> Sequence[Key]:
        """Of all full blocks of that size; made once for all backends with that size."""
        found = self._keys.get(block_size)
        if found is None:
            found, key = [], ROOT
            for start in range(0, len(self._tokens) - block_size + 1, block_size):
                key = next_key(key, self._tokens[start : start + block_size])
                found.append(key)
            self._keys[block_size] = found
        return found
