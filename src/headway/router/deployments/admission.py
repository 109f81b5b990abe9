"""AdmissionGate: how many calls a deployment is asked at once, as `global.model_catalog.admission` says."""

from __future__ import annotations

import asyncio
from collections import deque

from headway.router.config.document.deployments import Admission


class Overloaded(Exception):
    """No place became free."""


class AdmissionGate:
    """First come, first served. Without `max_concurrency` everything goes through; `max_queue` None = any number waits, and 0 or None milliseconds =
    as long as the caller itself does."""

    def __init__(self, settings: Admission | None) -> None:
        self._most = (settings.max_concurrency if settings else None) or 0
        self._queue = settings.max_queue if settings else None
        milliseconds = settings.queue_timeout_ms if settings else None
        self._seconds = milliseconds / 1000 if milliseconds else None
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, timeout: float) -> float:
        """The seconds that are left of `timeout`. Raises Overloaded, and TimeoutError when the caller's own time is over first."""
        if not self._most:
            return timeout
        if self._running < self._most:
            self._running += 1
            return timeout
        if self._queue is not None and len(self._waiting) >= self._queue:
            raise Overloaded
        loop = asyncio.get_running_loop()
        began = loop.time()
        place: asyncio.Future[None] = loop.create_future()
        self._waiting.append(place)
        bound = timeout if self._seconds is None else min(timeout, self._seconds)
        try:
            async with asyncio.timeout(bound):
                await place
        except BaseException as error:
            if place in self._waiting:
                self._waiting.remove(place)
            elif not place.cancelled():  # it was ours already
                self.leave()
            if isinstance(error, TimeoutError) and bound < timeout:
                raise Overloaded from None
            raise
        return timeout - (loop.time() - began)

    def leave(self) -> None:
        if not self._most:
            return
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # one that was cancelled has not taken itself away yet
                place.set_result(None)  # the place goes on
                return
        self._running -= 1
