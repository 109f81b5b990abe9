"""From a backend's answer to a Reply: passed on as it is where the backend speaks chat completions, translated where it does not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson

from headway.router.generation.services import Services
from headway.router.request.decoding import events
from headway.router.request.reply import Chunks, Reply
from headway.router.upstream.answer_shape import is_answer, reported_error
from headway.router.upstream.asking import broken_answer
from headway.router.upstream.errors import UpstreamError
from headway.router.upstream.exchange import Exchange, TryError
from headway.router.upstream.formats.format import BackendReportedError, Format
from headway.router.upstream.metering import StreamMeter, report_whole
from headway.router.upstream.other_form import as_one_piece, as_stream
from headway.router.upstream.passing import PassedStream

_KEPT_HEADERS = ("retry-after",)


class Replying:
    """`began` is when the model was asked; `note` takes what became of the answer into the request's attempts. `path` is the route that was asked,
    None for chat. `streams`: a stream was asked for; `with_usage`: it tells its usage."""

    def __init__(
        self, model: str, services: Services, began: float, note: Callable[[str], None], path: str | None, streams: bool, with_usage: bool
    ):
        self._path = path
        self._streams = streams
        self._model = model
        self._with_usage = with_usage
        self._services = services
        self._began = began
        self._note = note

    async def reply(self, exchange: Exchange, style: Format) -> Reply:
        """Raises UpstreamError for an answer that cannot be read or is none; nothing of it has been passed on then."""
        headers = {name: exchange.headers[name] for name in _KEPT_HEADERS if name in exchange.headers}
        if 300 <= exchange.status < 400:
            exchange.close()
            raise UpstreamError(
                f'backend "{exchange.backend.alias}" answered with a redirect, which is not followed',
                fix="Correct its address.",
            )
        if exchange.status < 400 and exchange.streams:
            stream = await self._stream(exchange, style, headers)
            return stream if self._streams or self._path is not None else await self._in_one_piece(stream, exchange)
        try:
            raw = await exchange.read()
        except TryError as error:
            raise self._broken(exchange, error.outcome) from None
        if exchange.status >= 400:
            return Reply(status=exchange.status, raw=raw, content_type=exchange.content_type, headers=headers)
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise self._broken(exchange, "bad_body") from None
        body = None
        if style.whole is not None:
            body = answer = self._translated(exchange, style.whole, answer)
        elif (told := reported_error(answer)) is not None:
            raise self._broken(exchange, "reported", told)
        elif not is_answer(answer, self._path):
            raise self._broken(exchange, "bad_shape")
        report_whole(
            self._model, answer, time.monotonic() - self._began, self._services.latencies, self._services.metrics
        )
        reply = Reply(status=exchange.status, body=body, raw=None if body is not None else raw, headers=headers)
        if self._streams and self._path != "/embeddings":
            return as_stream(reply, answer, self._path, self._with_usage)
        return reply

    async def _in_one_piece(self, stream: Reply, exchange: Exchange) -> Reply:
        whole = await as_one_piece(stream)
        if whole is None:
            raise self._broken(exchange, "no_end")
        return whole

    async def _stream(self, exchange: Exchange, style: Format, headers: dict[str, str]) -> Reply:
        meter = StreamMeter(self._began)
        stream = PassedStream(
            exchange,
            meter if style.chunks is None else None,
            lambda: meter.report(self._model, self._services.latencies, self._services.metrics),
            lambda outcome: self._ended(exchange, outcome),
        )
        if style.chunks is None:
            await _begun(stream)
            return Reply(
                status=exchange.status,
                raw_chunks=stream,
                content_type=exchange.content_type,
                headers=headers,
                source=stream,
            )
        translated = _TranslatedStream(stream, style.chunks(events(stream), self._with_usage), meter)
        await _begun(translated)
        return Reply(status=exchange.status, chunks=translated, headers=headers, source=stream)

    def _translated(
        self, exchange: Exchange, whole: Callable[[dict[str, Any]], dict[str, Any]], answer: Any
    ) -> dict[str, Any]:
        try:
            return whole(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._broken(exchange, "bad_body") from None

    def _broken(self, exchange: Exchange, outcome: str, told: str | None = None) -> UpstreamError:
        self._ended(exchange, outcome)
        return broken_answer(exchange.backend.alias, outcome, told)

    def _ended(self, exchange: Exchange, outcome: str) -> None:
        """The try began well and was counted so; how it went on is told beside that."""
        self._note(f"{exchange.backend.alias}: {outcome}")
        self._services.metrics.count("vsr_upstream_attempts", self._model, exchange.backend.alias, outcome)


async def _begun(stream: PassedStream | _TranslatedStream) -> None:
    """Whoever stops waiting for the first events ends the backend's work."""
    try:
        await stream.begin()
    except BaseException:
        await stream.aclose()
        raise


class _TranslatedStream:
    """Chunks made of a backend's events. Closing it ends the backend's work, whether or not it was begun."""

    def __init__(self, stream: PassedStream, chunks: Chunks, meter: StreamMeter):
        self._stream = stream
        self._chunks = chunks
        self._meter = meter
        self._first: dict[str, Any] | None = None

    async def begin(self) -> None:
        """Wait for the first chunk. Raises UpstreamError."""
        self._first = await anext(self, None)

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            if not self._meter.finished:
                raise broken_answer(self._stream.alias, "no_end") from None
            self._stream.complete()
            raise
        except BackendReportedError as error:
            await self.aclose()
            raise UpstreamError(f'backend "{self._stream.alias}" reported an error in the middle of its answer: {error}') from None
        except (KeyError, TypeError, ValueError, AttributeError):
            await self.aclose()
            raise broken_answer(self._stream.alias, "bad_body") from None
        self._meter.note(chunk)
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
