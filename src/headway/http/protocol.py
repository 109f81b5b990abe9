"""The HTTP/1.1 protocol of uvicorn with bounds on what a client may send, and how long it may take to."""

from __future__ import annotations

import asyncio
import logging
from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headway.errors import HeadwayError, RequestError
from headway.http.left import ABORT, EXTENSION

_log = logging.getLogger(__name__)
_PHRASES = {400: b"Bad Request", 408: b"Request Timeout", 503: b"Service Unavailable"}


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """`max_bytes` of request line and headers, `seconds` for all of them to come; connections at the same time."""

    max_bytes: int
    max_headers: int
    seconds: float
    max_connections: int


Rendered: TypeAlias = tuple[int, bytes]
"""Status and JSON body of an error."""


class HeadTooLarge(Exception):
    """Request line and headers are over the bounds; the parser turns it into a refusal and the connection is closed."""


def bounded_protocol(limits: HeadLimits, render: Callable[[HeadwayError], Rendered]) -> type[HttpToolsProtocol]:
    """A protocol class for uvicorn's `http` setting. What it refuses is answered with what `render` makes of the error."""

    class BoundedProtocol(HttpToolsProtocol):
        _head = 0
        _head_timer: TimerHandle | None = None
        _too_large = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self._leavers: list[Callable[[], object]] = []
            super().connection_made(transport)
            if len(self.connections) > limits.max_connections:
                self._refuse(
                    HeadwayError(
                        f"{limits.max_connections} connections are open, as many as there may be",
                        reason="too_many_connections",
                    )
                )
                return
            self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)
            for leave in tuple(self._leavers):
                leave()

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {EXTENSION: self._leavers, ABORT: self.transport.abort}  # type: ignore[dict-item]
            self._head = 0
            if self._head_timer is None:
                self._await_head()

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value))
            if len(self.headers) >= limits.max_headers:
                self._too_large = True
                raise HeadTooLarge
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._stop_timer()
            super().on_headers_complete()

        def send_400_response(self, msg: str) -> None:
            if self._too_large:
                what = f"Request line and headers are over {limits.max_bytes} bytes or {limits.max_headers} headers"
                self._refuse(RequestError(what, reason="head_too_large"))
            else:
                self._refuse(RequestError("This is no HTTP/1.1 request", reason="body_invalid"))

        def _count(self, size: int) -> None:
            self._head += size
            if self._head > limits.max_bytes:
                self._too_large = True
                raise HeadTooLarge

        def _await_head(self) -> None:
            if limits.seconds > 0:
                self._head_timer = self.loop.call_later(limits.seconds, self._head_is_late)

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _head_is_late(self) -> None:
            what = f"The request's line and headers did not come within {limits.seconds:g} s"
            self._refuse(RequestError(what, reason="request_timeout"))

        def _refuse(self, error: HeadwayError) -> None:
            """Answer without the application and close; nothing is sent into an answer that has begun, or before one to a whole request."""
            self._stop_timer()
            if self.transport.is_closing():
                return
            cycle = self.cycle
            is_its_own = cycle is not None and cycle.more_body and not cycle.response_started and not self.pipeline
            if cycle is None or cycle.response_complete or is_its_own:
                status, body = render(error)
                _log.debug("refused a connection: %s", error.reason)
                self.transport.write(
                    b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
                    % (status, _PHRASES[status], len(body))
                    + body
                )
            self.transport.close()

    return BoundedProtocol
