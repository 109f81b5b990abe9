"""Work for a client ends when the client leaves: a task that runs beside a listener for the disconnect."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

from headway.http.shutdown import shutting_down

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientLeft(Exception):
    """The connection is gone; nobody reads the answer."""


class ClientWatch:
    """Listens on `receive` (whose body has been read) from its creation until `close`.

    `closing` is done when the server ends its requests.
    """

    def __init__(self, receive: Receive, closing: asyncio.Future[None]):
        self._gone = asyncio.ensure_future(_until_gone(receive))
        self._closing = closing

    def close(self) -> None:
        self._gone.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises ClientLeft or the shutting-down error after `work` was cancelled and has ended."""
        task = asyncio.ensure_future(work)
        await self.wait(task)
        return task.result()

    async def wait(self, task: asyncio.Future[Any], timeout: float | None = None) -> bool:
        """Wait for `task`; False if `timeout` passed first. Leaving in any other way cancels the task and waits for its end."""
        try:
            await asyncio.wait({task, self._gone, self._closing}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        if task.done():
            return True
        if self._gone.done():
            await _cancel(task)
            raise ClientLeft
        if self._closing.done():
            await _cancel(task)
            raise shutting_down()
        return False


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
