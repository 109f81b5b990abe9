"""VectorMemo: the vectors of texts that the configuration names, kept across reloads."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float32]
Input: TypeAlias = str | Mapping[str, str]
"""A text, or `{"image": data-url}`."""

_MOST = 65536


class VectorMemo:
    """A vector belongs to what made it: `representation` is part of its key, so that one of another model is never found. The least recently
    used goes when there are more than `most`. `latest` holds the representation of the last answer of each deployment: a guess about the next
    one. Any thread may call."""

    def __init__(self, most: int = _MOST) -> None:
        self.latest: dict[str, str] = {}
        self._most = most
        self._vectors: OrderedDict[tuple[str, bytes], Vector] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, representation: str, given: Input) -> Vector | None:
        key = representation, _digest(given)
        with self._lock:
            found = self._vectors.get(key)
            if found is not None:
                self._vectors.move_to_end(key)
            return found

    def keep(self, representation: str, given: Input, vector: Vector) -> None:
        with self._lock:
            self._vectors[representation, _digest(given)] = vector
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)

    def __len__(self) -> int:
        return len(self._vectors)


def _digest(given: Input) -> bytes:
    kind, content = ("text", given) if isinstance(given, str) else next(iter(given.items()))
    return hashlib.blake2b(f"{kind}\0{content}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
