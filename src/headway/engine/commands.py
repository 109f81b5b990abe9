"""Commands: what event loops want of an engine's thread, in order."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

from headway.engine.sequence import Request
from headway.errors import HeadwayError

T = TypeVar("T")
Command = Request | str | Callable[[], None] | None  # add | abort by id | do between two steps | stop
POLL_SECONDS: Final = 0.005


class Commands:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def put(self, command: Command) -> None:
        """On any thread."""
        self._queue.put(command)

    def pending(self, *, block: bool) -> Iterator[Command]:
        """On the engine's thread, those that are there now, at least one with `block`. When what is done with one of them raises, those behind
        it are still here."""
        if block:
            yield self._queue.get()
        for _ in range(self._queue.qsize()):
            yield self._queue.get_nowait()

    def ended_within(self, seconds: float) -> bool:
        """On the engine's thread, while there is no engine: those to be done find that out themselves, those about requests are void, since
        all requests have ended. True as soon as one says to stop, False when the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            with suppress(queue.Empty):
                command = self._queue.get(timeout=left) if left > 0 else self._queue.get_nowait()
                if command is None:
                    return True
                if callable(command):
                    command()
                continue
            return False

    async def do(self, act: Callable[[], T], still_there: Callable[[], object]) -> T:
        """Run `act` on the engine's thread, between two steps. Raises what it raises, and what `still_there` raises when nobody will run it."""
        done: Future[T] = Future()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(act())
            except Exception as error:
                done.set_exception(error)

        self._queue.put(run)
        try:
            while not done.done():
                still_there()
                await asyncio.sleep(POLL_SECONDS)
        except HeadwayError:
            done.cancel()  # who is told that it failed need not fear that it is done later
            raise
        return done.result()
