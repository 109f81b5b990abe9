"""ResultCache: whole answers of one worker, least recently used first out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

_LONGEST_ANSWER = 256 * 1024


class ResultCache:
    """Only answers without any failed part belong in here. `entries` 0 = none are kept."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._kept: OrderedDict[bytes, Mapping[str, Any]] = OrderedDict()

    @property
    def is_on(self) -> bool:
        return self._entries > 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> Mapping[str, Any] | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: bytes, answer: Mapping[str, Any], size: int) -> None:
        """`size` in bytes; a long answer is not kept."""
        if self.is_on and size <= _LONGEST_ANSWER:
            self._kept[key] = answer
            self._kept.move_to_end(key)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()


def cache_key(path: str, body: bytes) -> bytes:
    """`body` without what does not change the answer (its deadline, the name of the model)."""
    return sha256(path.encode() + b"\0" + body).digest()
