"""A backend's stream on its way to the client: whole events as they come, nothing read ahead, nothing decoded for the client."""

from __future__ import annotations

from collections.abc import Callable

from headway.router.upstream.asking import broken_answer
from headway.router.upstream.exchange import Exchange, TryError
from headway.router.upstream.metering import StreamMeter
from headway.wire.sse import DONE

EVENT_LIMIT = 16 * 1024 * 1024
_LAST_SECONDS = 1.0  # for a backend to end its transfer after the final event, so that the connection can be kept


class PassedStream:
    """The bytes of a stream, cut between events, so that a failure never leaves half an event behind.

    A stream that stops, breaks off, turns to something that is no chunk, reports an error, or ends before its model was finished raises UpstreamError.
    An end without `[DONE]` after the last finish reason gets one; nothing after `[DONE]` is passed on. Without a meter it is another API's stream, whose translation knows its end, and calls
    `complete`. `aclose` may be called at any time, also before the first piece, and ends the backend's work.
    """

    def __init__(
        self, exchange: Exchange, meter: StreamMeter | None, complete: Callable[[], None], broken: Callable[[str], None]
    ):
        self._exchange = exchange
        self._meter = meter
        self.complete = complete
        self._broken = broken
        self._rest = b""
        self._ended = False
        self._failed: str | None = None
        self._first: bytes | None = None

    @property
    def alias(self) -> str:
        return self._exchange.backend.alias

    async def begin(self) -> None:
        """Wait for the first events: until they are there another model may still answer. Raises UpstreamError."""
        self._first = await anext(self, None)

    def __aiter__(self) -> PassedStream:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._ended:
            raise StopAsyncIteration
        try:
            if self._failed is not None:
                raise TryError(self._failed)
            if self._meter is not None and self._meter.done:
                self._ended = True
                await self._exchange.finish(_LAST_SECONDS)
                raise StopAsyncIteration
            while True:
                piece = await self._exchange.next_piece()
                if not piece:
                    return self._last()
                whole, self._rest = _whole_events(self._rest + piece if self._rest else piece)
                if whole:
                    return self._checked(whole)
                if len(self._rest) > EVENT_LIMIT:
                    raise TryError("too_large")
        except TryError as error:
            self._ended = True
            self._exchange.close()
            self._broken(error.outcome)
            told = self._meter.reported if self._meter is not None else None
            raise broken_answer(self._exchange.backend.alias, error.outcome, told) from None

    async def aclose(self) -> None:
        self._ended, self._first = True, None
        self._exchange.close()

    def _checked(self, whole: bytes) -> bytes:
        """What is good of `whole`; what is not ends the stream with the next step, or at once when it comes first."""
        meter = self._meter
        if meter is None:
            return whole
        good = meter.read(whole)
        if meter.done and meter.events:
            self.complete()
            return whole[:good] + DONE
        if good < len(whole):
            self._failed = "reported" if meter.reported is not None else "no_answer" if meter.done else "bad_body"
            if not good:
                raise TryError(self._failed)
        return whole[:good]

    def _last(self) -> bytes:
        """What is left at the end of the connection."""
        last = self._rest + b"\n\n" if self._rest.strip() else b""
        if self._meter is None:
            self._ended = True
            if not last:
                raise StopAsyncIteration
            return last
        last = self._checked(last)
        if self._failed is not None:
            return last
        self._ended = True
        if self._meter.done:
            return last
        if not self._meter.finished:
            raise TryError("no_end")
        self.complete()
        return last + DONE


def _whole_events(data: bytes) -> tuple[bytes, bytes]:
    """What ends with an empty line, and the rest."""
    cut = max(_after(data, b"\n\n"), _after(data, b"\r\n\r\n"))
    return data[:cut], data[cut:]


def _after(data: bytes, mark: bytes) -> int:
    at = data.rfind(mark)
    return 0 if at < 0 else at + len(mark)
