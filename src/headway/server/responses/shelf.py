"""ResponseShelf: the responses that this process keeps, and those that it still works on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from headway.errors import QueueFullError
from headway.wire.responses.items import Item
from headway.wire.responses.records import BoundedRecords, Record, no_response

MOST_RESPONSES: Final = 10_000
SECONDS: Final = 24 * 3600.0
_MOST_RUNNING: Final = 1024


class ResponseShelf:
    """Lives on one event loop. Bounded in number, bytes and age; what runs in the background, in number."""

    def __init__(self) -> None:
        self._records = BoundedRecords(MOST_RESPONSES, SECONDS)
        self._running: dict[str, asyncio.Task[None]] = {}

    def put(self, response: dict[str, Any], items: Sequence[Item]) -> None:
        self._records.put(response["id"], {"response": response, "input": list(items)})

    def get(self, name: str) -> Record:
        """Raises NotFoundError."""
        record = self._records.get(name)
        if record is None:
            raise no_response(name)
        return record

    def run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """In the background. Raises QueueFullError."""
        if len(self._running) >= _MOST_RUNNING:
            work.close()
            raise QueueFullError(f"{_MOST_RUNNING} responses are being made in the background", param="background")
        task = self._running[name] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._running.pop(name, None))

    async def stop(self, name: str) -> bool:
        """Whether there was work on it to stop; it has ended then."""
        task = self._running.get(name)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()
