"""Where responses are kept for `previous_response_id` and retrieval: in this process or in Redis."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import orjson

from headway.errors import HeadwayError

Record: TypeAlias = dict[str, Any]
"""`owner`, `response` and `input` (its items)."""
MOST_BYTES = 256 * 1024 * 1024


class StoreUnavailableError(HeadwayError):
    """The store of responses cannot be reached."""

    reason = "store_unavailable"


class ResponseStore(Protocol):
    """Records by the id of their response; each ends `ttl_seconds` after it was put. Raises StoreUnavailableError."""

    async def put(self, name: str, record: Record) -> None: ...

    async def get(self, name: str) -> Record | None: ...

    async def delete(self, name: str) -> bool: ...


class MemoryStore:
    """At most `most` records and MOST_BYTES of them; the oldest go first."""

    def __init__(self, most: int, ttl_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.ttl_seconds, self._clock = most, ttl_seconds, clock
        self._records: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    async def put(self, name: str, record: Record) -> None:
        raw = orjson.dumps(record)
        self._drop(name)
        self._records[name] = self._clock() + self.ttl_seconds, raw
        self._bytes += len(raw)
        while self._records and (len(self._records) > self.most or self._bytes > MOST_BYTES or self._oldest_is_over()):
            self._drop(next(iter(self._records)))

    async def get(self, name: str) -> Record | None:
        end, raw = self._records.get(name, (0.0, b""))
        if not raw:
            return None
        if end <= self._clock():
            self._drop(name)
            return None
        found: Record = orjson.loads(raw)
        return found

    async def delete(self, name: str) -> bool:
        return self._drop(name)

    def _drop(self, name: str) -> bool:
        _, raw = self._records.pop(name, (0.0, b""))
        self._bytes -= len(raw)
        return bool(raw)

    def _oldest_is_over(self) -> bool:
        return next(iter(self._records.values()))[0] <= self._clock()
