"""Writing answers: one JSON body, or a stream as it is produced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import orjson
from starlette.types import Send

from headway.errors import HeadwayError
from headway.http.client_watch import ClientLeft
from headway.router.listener.answer_headers import SCHEMA, STREAM, RawHeaders
from headway.telemetry.defect import describe_defect
from headway.wire.errors import RETRY_AFTER_SECONDS, reason_of
from headway.wire.sse import CONTENT_TYPE

_JSON = (b"content-type", b"application/json")
_SSE = (b"content-type", CONTENT_TYPE.encode())
"""Both come first in the list of headers; what follows may not repeat them."""


async def send_json(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    head: RawHeaders = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def send_bytes(send: Send, status: int, content_type: str, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    head: RawHeaders = [(b"content-type", content_type.encode("latin-1", "replace")), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def send_object(send: Send, body: Any, headers: Iterable[tuple[bytes, bytes]] = (), status: int = 200) -> None:
    await send_json(send, status, orjson.dumps(body), headers)


class EventStream:
    """A stream to one client. The head goes out with the first piece, so that what fails before it still gets a status of its own.

    `send` waits while the client's buffer is full: nothing is read from the backend meanwhile. A client that reads nothing for `seconds` is left:
    `abort` ends its connection, and ClientLeft is raised.
    """

    def __init__(self, send: Send, headers: RawHeaders, seconds: float, abort: Callable[[], object]) -> None:
        self._send = send
        self._seconds, self._abort = seconds, abort
        self._headers = headers
        self.started = False

    async def write(self, pieces: AsyncIterator[bytes]) -> None:
        async for piece in pieces:
            if not self.started:
                await self._start()
            await self._body(piece, more=True)
        if not self.started:
            await self._start()
        await self._body(b"", more=False)

    async def end_with(self, piece: bytes) -> None:
        await self._body(piece, more=False)

    async def _body(self, piece: bytes, more: bool) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._send({"type": "http.response.body", "body": piece, "more_body": more})
        except TimeoutError:
            self._abort()
            raise ClientLeft from None

    async def _start(self) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [_SSE, *STREAM, *self._headers]})


def error_headers(error: BaseException, path: str) -> RawHeaders:
    """For answers that are errors of our own."""
    found: RawHeaders = [SCHEMA, (b"x-vsr-response-path", path.encode())]
    told = getattr(error, "headers", None) or {}
    found += [(name.encode(), str(value).encode("latin-1", "replace")) for name, value in told.items()]
    seconds = RETRY_AFTER_SECONDS.get(reason_of(error))
    if seconds is not None and "retry-after" not in told:
        found.append((b"retry-after", b"%d" % seconds))
    if isinstance(error, HeadwayError) and error.reason in ("body_too_large", "request_timeout"):
        found.append((b"connection", b"close"))  # the rest of the body is not read
    if isinstance(error, HeadwayError) and error.reason == "unauthorized":
        found.append((b"www-authenticate", b"Bearer"))
    return found


def note_defect(error: BaseException, log: logging.Logger) -> None:
    """What is no HeadwayError is a defect of ours: logged with its place, never with the request's text."""
    if not isinstance(error, HeadwayError):
        log.error("a request failed: %s", describe_defect(error))
