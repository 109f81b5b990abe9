"""Listener: where the outputs of one request go, from the thread of the engine to a caller's event loop."""

from __future__ import annotations

import asyncio

from headway.engine.outputs import RequestOutput
from headway.engine.sequence import Request
from headway.errors import HeadwayError


class Listener:
    """`queue` is filled on `loop`, never from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: Request):
        self.loop = loop
        self.request = request
        self.queue: asyncio.Queue[RequestOutput | HeadwayError] = asyncio.Queue()
