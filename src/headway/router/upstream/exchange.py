"""One try: one request to one backend, until the head of its answer; then the answer's bytes as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
from yarl import URL

from headway.router.upstream.backend import Backend
from headway.router.upstream.connections import Connections

ANSWER_LIMIT = 64 * 1024 * 1024
_LAST_STATUS = 599


@dataclass(frozen=True, slots=True)
class TryError(Exception):
    """Why a try gave no answer.

    `outcome`: queue_full, queue_timeout (the backend had no place for it), connect_failed, connect_timeout (nothing was sent), closed (gone before the first byte), first_byte_timeout, bad_answer, and once the
    head was there idle_timeout, total_timeout, broken, too_large.
    """

    outcome: str

    @property
    def sent(self) -> bool:
        return not self.busy and self.outcome not in ("connect_failed", "connect_timeout")

    @property
    def busy(self) -> bool:
        return self.outcome in ("queue_full", "queue_timeout")

    @property
    def timed_out(self) -> bool:
        return self.outcome.endswith("timeout")


class Exchange:
    """An answer whose head is there. It must be read to its end or closed; closing it early ends the connection, and so the backend's work."""

    def __init__(
        self, backend: Backend, response: aiohttp.ClientResponse, idle: float | None, until: float | None = None
    ):
        self.backend = backend
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.on_end: Callable[[], None] | None = None
        self._response = response
        self._idle = idle
        self._until = until
        self._first: bytes | None = None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "application/json")

    @property
    def streams(self) -> bool:
        return self.content_type.lower().startswith("text/event-stream")

    async def read(self, limit: int = ANSWER_LIMIT) -> bytes:
        """The whole body, before the time for the whole answer is over. Raises TryError."""
        content = self._response.content
        if content.is_eof() and content.exception() is None and self._first is None:
            whole = await content.read(-1)  # most answers came whole with their head, into a bounded buffer: no clock is needed
            self._end(self._response.release)
            return whole
        parts, size = [], 0
        try:
            async with asyncio.timeout_at(self._until):
                while piece := await self.next_piece():
                    size += len(piece)
                    if size > limit:
                        self.close()
                        raise TryError("too_large")
                    parts.append(piece)
        except TimeoutError:
            self.close()
            raise TryError("total_timeout") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def next_piece(self) -> bytes:
        """What has arrived, or b"" at the end. Nothing is read ahead of the caller beyond the session's buffer. Raises TryError."""
        if self._first is not None:
            piece, self._first = self._first, None
            return piece
        try:
            async with asyncio.timeout(self._idle):
                piece = await self._response.content.readany()
        except TimeoutError:
            self.close()
            raise TryError("idle_timeout") from None
        except (aiohttp.ClientError, ConnectionError):
            self.close()
            raise TryError("broken") from None
        except BaseException:
            self.close()
            raise
        if not piece:
            self._end(self._response.release)
        return piece

    async def begin(self) -> None:
        """Wait for the first piece of a stream: a backend that ends before it has sent nothing that the client could have."""
        piece = await self._response.content.readany()
        if not piece:
            self.close()
            raise TryError("closed")
        self._first = piece

    async def finish(self, seconds: float) -> None:
        """Read what is left, which nobody wants, for at most `seconds`: a connection that is at its end can be used again."""
        try:
            async with asyncio.timeout(seconds):
                while await self.next_piece():
                    pass
        except (TimeoutError, TryError):
            self.close()

    def close(self) -> None:
        self._end(self._response.close)

    def _end(self, how: Callable[[], object]) -> None:
        ended, self.on_end = self.on_end, None
        how()
        if ended is not None:
            ended()


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: `connect` until the connection stands, `head` until the first byte of the body (of a stream) or the head; `idle` after that.

    `until` is the moment, in the time of the event loop, at which an answer in one piece must have been read.
    """

    connect: float
    head: float | None
    idle: float | None
    until: float | None = None


async def open_exchange(
    connections: Connections, backend: Backend, url: URL, payload: bytes, headers: Mapping[str, str], times: Times
) -> Exchange:
    """POST `payload`. Raises TryError."""
    timeout = _timeout(times.connect)
    response: aiohttp.ClientResponse | None = None
    try:
        async with asyncio.timeout(times.head):
            response = await connections.session(backend.socket).post(
                url, data=payload, headers=headers, timeout=timeout, allow_redirects=False
            )
            if not 200 <= response.status <= _LAST_STATUS:
                raise TryError("bad_answer")
            exchange = Exchange(backend, response, times.idle, times.until)
            if exchange.streams and exchange.status < 400:
                await exchange.begin()
            return exchange
    except BaseException as error:
        if response is not None:
            response.close()
        outcome = _outcome(error)
        if outcome is None:
            raise
        raise TryError(outcome) from None


def _outcome(error: BaseException) -> str | None:
    """The order matters: aiohttp's timeouts are kinds of TimeoutError, its connection errors kinds of OSError."""
    for kind, outcome in _OUTCOMES:
        if isinstance(error, kind):
            return outcome
    return None


_OUTCOMES: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ConnectionTimeoutError, "connect_timeout"),
    (TimeoutError, "first_byte_timeout"),
    (aiohttp.ClientConnectorError, "connect_failed"),
    (aiohttp.ServerDisconnectedError, "closed"),
    (aiohttp.ClientOSError, "closed"),
    (aiohttp.ClientPayloadError, "closed"),
    (ConnectionError, "closed"),
    (aiohttp.ClientError, "bad_answer"),
)


@lru_cache(maxsize=256)
def _timeout(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect)
