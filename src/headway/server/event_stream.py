"""The response that streams SSE frames and stops when the client leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headway.errors import HeadwayError
from headway.http.client_watch import ClientLeft, ClientWatch
from headway.wire import sse

_log = logging.getLogger(__name__)
Frames = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class StreamManner:
    """What an API wants around its frames: `end` after the last one, `error` instead of it, `keep_alive` during silence."""

    end: bytes
    error: Callable[[BaseException], bytes]
    keep_alive: bytes


def _error_and_done(error: BaseException) -> bytes:
    return sse.error_frame(error) + sse.DONE


OPENAI = StreamManner(sse.DONE, _error_and_done, sse.KEEP_ALIVE)


async def open_stream(
    frames: Frames, watch: ClientWatch, keep_alive: float = 0.0, headers: Mapping[str, str] | None = None, manner: StreamManner = OPENAI
) -> EventStream:
    """Wait for the first frame, so that a request that fails before it gets a status of its own, then stream.

    With `keep_alive` > 0 the wait is no longer than that many seconds: a client that asked for comments during silence
    gets its headers then; what fails later becomes an error frame. Takes over `watch`.
    """
    first = asyncio.ensure_future(anext(frames))
    await watch.wait(first, timeout=keep_alive or None)
    if first.done():
        first.result()
    return EventStream(_joined(first, frames), watch, keep_alive, headers, manner)


async def _joined(first: asyncio.Future[bytes], rest: Frames) -> Frames:
    async with aclosing(rest):
        yield await first
        async for frame in rest:
            yield frame


class EventStream(Response):
    """Sends `frames`, then the end of `manner`; an error in between becomes its error frame."""

    media_type = "text/event-stream"

    def __init__(
        self, frames: Frames, watch: ClientWatch, keep_alive: float, headers: Mapping[str, str] | None = None, manner: StreamManner = OPENAI
    ):
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})})
        del self.headers["content-length"]
        self._frames = frames
        self._watch = watch
        self._keep_alive = keep_alive
        self._manner = manner
        self._last_sent = 0.0
        self._ticker: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._keep_alive > 0:
                self._ticker = asyncio.create_task(self._tick(send))
            await self._watch.wait(asyncio.ensure_future(self._send_all(send)))
        except ClientLeft:
            _log.debug("a client left its stream")
        except HeadwayError as error:  # the server shuts down
            await self._end(send, error)
        finally:
            self._stop_ticker()
            self._watch.close()

    async def _send_all(self, send: Send) -> None:
        error: Exception | None = None
        loop = asyncio.get_running_loop()
        try:
            async with aclosing(self._frames) as frames:
                async for frame in frames:
                    self._last_sent = loop.time()
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
        except HeadwayError as known:
            error = known
        except Exception as unknown:
            _log.exception("a stream failed")
            error = unknown
        await self._end(send, error)

    async def _end(self, send: Send, error: Exception | None) -> None:
        self._stop_ticker()  # nothing may follow the last frame
        tail = self._manner.end if error is None else self._manner.error(error)
        await send({"type": "http.response.body", "body": tail, "more_body": False})

    def _stop_ticker(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()

    async def _tick(self, send: Send) -> None:
        """A sign of life after each `keep_alive` seconds without a frame."""
        loop = asyncio.get_running_loop()
        self._last_sent = loop.time()
        while True:
            await asyncio.sleep(self._last_sent + self._keep_alive - loop.time())
            if loop.time() - self._last_sent >= self._keep_alive:
                self._last_sent = loop.time()
                await send({"type": "http.response.body", "body": self._manner.keep_alive, "more_body": True})
