"""Where responses are kept for `previous_response_id` and retrieval: in this process or in Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from headway.errors import HeadwayError
from headway.wire.responses.records import BoundedRecords, Record


class StoreUnavailableError(HeadwayError):
    """The store of responses cannot be reached."""

    reason = "store_unavailable"


class ResponseStore(Protocol):
    """Records by the id of their response, with their `owner`; each ends `ttl_seconds` after it was put. Raises StoreUnavailableError."""

    async def put(self, name: str, record: Record) -> None: ...

    async def get(self, name: str) -> Record | None: ...

    async def delete(self, name: str) -> bool: ...


class MemoryStore:
    """BoundedRecords behind the interface of a store that may be elsewhere."""

    def __init__(self, most: int, ttl_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.records = BoundedRecords(most, ttl_seconds, clock)

    async def put(self, name: str, record: Record) -> None:
        self.records.put(name, record)

    async def get(self, name: str) -> Record | None:
        return self.records.get(name)

    async def delete(self, name: str) -> bool:
        return self.records.drop(name)
