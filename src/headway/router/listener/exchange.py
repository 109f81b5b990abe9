"""One request that a model answers, from its body to the end of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from headway.errors import DeadlineError, HeadwayError, RequestError
from headway.http.client_watch import ClientLeft
from headway.http.left import abort_of
from headway.router.answering import answer, answer_unprocessed
from headway.router.listener.accounting import FROM_BACKENDS, Account
from headway.router.listener.admission import require_model_allowed
from headway.router.listener.answer_headers import RawHeaders, joined, reply_headers, routing_headers, safe_headers
from headway.router.listener.budgets import reserve
from headway.router.listener.head import deadline_of
from headway.router.listener.limiting import let_in
from headway.router.listener.request import PublicRequest
from headway.router.listener.request_body import parsed, read_body
from headway.router.listener.respond import EventStream, error_headers, note_defect, send_json
from headway.router.listener.session import session_of
from headway.router.listener.stream_meter import StreamMeter, close_iterator
from headway.router.listener.trace import debug_headers
from headway.router.listener.usage import Usage, usage_of
from headway.router.protocols.endpoint import Endpoint, Opened
from headway.router.protocols.errors import foreign_error, last_event, rendered_for
from headway.router.request.context import RequestContext
from headway.router.request.decoding import body_of, chunks_of
from headway.router.request.reply import Reply
from headway.wire.errors import reason_of

_log = logging.getLogger(__name__)
_INVISIBLE_DEADLINE = 24 * 3600.0  # the client named none: models' own timeouts hold


class Exchange:
    """Made per request; `run` ends with an answer sent, or raises ClientLeft or CancelledError when there is nobody to send it to."""

    def __init__(self, request: PublicRequest, endpoint: Endpoint) -> None:
        self._request, self._endpoint = request, endpoint
        self._account = Account(request.generation.services, request.front, request.caller.key, request.began)
        self._context: RequestContext | None = None
        self._opened: Opened | None = None
        self._prompt_bytes = 0
        self._stream: EventStream | None = None

    async def run(self) -> None:
        try:
            await self._run()
        finally:  # after whatever was used is in the ledger
            self._account.end()

    async def _run(self) -> None:
        try:
            reply = await self._answer()
        except Exception as error:
            await self.fail(error)
            return
        if reply.status >= 400:
            await self._send_foreign_error(reply)
        elif reply.streams:
            await self._send_stream(reply)
        else:
            await self._send_whole(reply)

    def left(self) -> None:
        """There is nobody to answer any more."""
        self._account.answered("client_left", None)
        self._account.end()

    async def fail(self, error: BaseException) -> None:
        """Write `error`, in the stream if that has begun."""
        if isinstance(error, ClientLeft):
            raise error
        note_defect(error, _log)
        reason = reason_of(error)
        path = "rate_limited" if reason in ("rate_limited", "budget_exceeded") else "error"
        self._account.failed(reason, path)
        if self._stream is not None and self._stream.started:
            await self._stream.end_with(last_event(self._endpoint.protocol, error))
            return
        status, body = rendered_for(self._endpoint.protocol, error)
        await send_json(self._request.send, status, body, joined(self._headers(path), error_headers(error, path)))

    async def _answer(self) -> Reply:
        request, caller = self._request, self._request.caller
        raw = await read_body(request)
        self._prompt_bytes = len(raw)
        body = parsed(raw, request.front.limits)
        opened = self._opened = await self._endpoint.open(body, request)
        if opened.translation is not None and opened.translation.losses.found:
            request.generation.services.metrics.count("llm_translation_lossy", self._endpoint.protocol)
        model = str(opened.chat["model"])
        require_model_allowed(model, request.rules, caller.key)
        self._account.hold, self._account.estimated_prompt = await reserve(request.generation, caller.key, opened.chat, len(raw))
        self._account.admitted = await let_in(request, model)
        context = self._context = self._account.context = RequestContext(
            generation=request.generation,
            body=opened.chat,
            headers=caller.headers,
            identity=caller.identity,
            deadline=deadline_of(caller, _INVISIBLE_DEADLINE),
            request_id=caller.request_id,
            protocol=opened.protocol,
            listener=request.rules.name,
            debug=caller.debug,
        )
        if opened.view is not None:
            context.view = opened.view
        context.session = session_of(caller.headers, self._endpoint.protocol, body, context.view, caller.request_id)
        if self._asks_for_usage(opened.chat):
            options = opened.chat.get("stream_options") or {}
            context.body = {**opened.chat, "stream_options": {**options, "include_usage": True}}
        if not opened.routes and request.generation.names.resolve(model).recipe is not None:
            raise RequestError(
                f'"{model[:100]}" is a name for chats: the router chooses among chat models', param="model", fix="Name a model that this route can be passed to."
            )
        return await (answer_unprocessed(context) if caller.skip else answer(context))

    def _asks_for_usage(self, chat: Mapping[str, Any]) -> bool:
        """A stream tells its usage only when asked; what has a price or a limit needs it. Translated protocols report it themselves."""
        if chat.get("stream") is not True:
            return False
        options = chat.get("stream_options")
        if isinstance(options, Mapping) and options.get("include_usage") is True:
            return False
        assert self._opened is not None
        return self._opened.translation is not None or self._request.front.counts_tokens

    def _headers(self, path: str) -> RawHeaders:
        context = self._context
        if context is None:
            return [(b"x-request-id", self._request.caller.request_id.encode())]
        found = routing_headers(context, path) + safe_headers(self._account.admitted.headers)
        if self._opened is not None and self._opened.translation is not None:
            found.append((b"x-vsr-client-protocol", self._endpoint.protocol.encode()))
            losses = self._opened.translation.losses.found
            if losses:
                found.append((b"x-vsr-protocol-warnings", ",".join(map(str, losses)).encode()))
        return joined(found, debug_headers(context)) if context.debug else found

    async def _send_whole(self, reply: Reply) -> None:
        translation = self._opened.translation if self._opened else None
        usage: Usage | None
        try:
            if translation is None and reply.raw is not None:
                usage, body = _usage_in(reply.raw), reply.raw
            else:
                found = body_of(reply)
                usage = usage_of(found)
                body = orjson.dumps(found if translation is None else await translation.whole(found))
        except Exception as error:
            await self.fail(error)
            return
        cost = self._account.cost(usage, reply.path)
        headers = joined(self._headers(reply.path), reply_headers(reply))
        if cost is not None:
            headers += [(b"x-vsr-cost", b"%.9f" % cost.amount), (b"x-vsr-cost-currency", cost.currency.encode())]
        self._account.answered(reply.path, usage)
        await self._account.settle()
        await send_json(self._request.send, reply.status, body, headers)

    async def _send_stream(self, reply: Reply) -> None:
        opened, context = self._opened, self._context
        assert opened is not None
        assert context is not None
        hides = opened.translation is None and context.body.get("stream_options") != opened.chat.get("stream_options")
        meter = StreamMeter(hides)
        request, headers = self._request, joined(self._headers(reply.path), reply_headers(reply))
        stream = self._stream = EventStream(request.send, headers, request.rules.idle_seconds, abort_of(request.scope))
        pieces = self._pieces(reply, opened, meter)
        deadline = context.deadline
        try:
            async with asyncio.timeout(deadline.left if deadline.visible else None):
                await stream.write(pieces)
        except TimeoutError:
            await self.fail(DeadlineError("the time that the request allows was over before the answer was complete"))
        except Exception as error:
            await self.fail(error)
        finally:
            self._count_stream(reply, meter)
            await close_iterator(pieces)
            await reply.close()

    def _pieces(self, reply: Reply, opened: Opened, meter: StreamMeter) -> AsyncIterator[bytes]:
        if opened.translation is not None:
            return opened.translation.events(meter.chunks(chunks_of(reply)))
        if reply.raw_chunks is not None:
            return meter.raw(reply.raw_chunks)
        return _framed(meter.chunks(chunks_of(reply)))

    def _count_stream(self, reply: Reply, meter: StreamMeter) -> None:
        usage = meter.usage
        if usage is None and not meter.complete and reply.path in FROM_BACKENDS:
            usage = meter.estimate(self._prompt_bytes)
        self._account.answered(reply.path, usage)

    async def _send_foreign_error(self, reply: Reply) -> None:
        """A backend refused, or a plugin blocked: its status stays."""
        raw = reply.raw if reply.raw is not None else orjson.dumps(reply.body or {})
        self._account.failed("blocked" if reply.path == "blocked" else "upstream_status", reply.path)
        body = foreign_error(self._endpoint.protocol, reply.status, raw)
        await send_json(self._request.send, reply.status, body, joined(self._headers(reply.path), reply_headers(reply)))


def _usage_in(raw: bytes) -> Usage | None:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise HeadwayError("The backend's answer is no JSON", reason="upstream_failed") from None
    return usage_of(body) if isinstance(body, dict) else None


async def _framed(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield b"data: " + orjson.dumps(chunk) + b"\n\n"
        yield b"data: [DONE]\n\n"
    finally:
        await close_iterator(chunks)
