"""Listener: where the outputs of one request go, from the thread of the engine to a caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from headway.engine.outputs import RequestOutput
from headway.engine.sequence import Request
from headway.errors import HeadwayError


class Listener:
    """`queue` is filled on `loop`, never from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: Request):
        self.loop = loop
        self.request = request
        self.queue: asyncio.Queue[RequestOutput | HeadwayError] = asyncio.Queue()


def post(loop: asyncio.AbstractEventLoop, items: Sequence[tuple[Listener, RequestOutput | HeadwayError]]) -> None:
    """Hand each item to its listener, all of which live on `loop`."""

    def put() -> None:
        for listener, item in items:
            listener.queue.put_nowait(item)

    with suppress(RuntimeError):  # the loop was closed: nobody is left to hear it
        loop.call_soon_threadsafe(put)
