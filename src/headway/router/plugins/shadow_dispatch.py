"""shadow_dispatch: copies of some requests to a second model, whose answers nobody gets."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from headway.errors import HeadwayError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import CREDENTIAL_HEADERS, ShadowDispatchPlugin
from headway.router.generation.services import Services
from headway.router.plugins.answer_text import text_of_body
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.decoding import body_of
from headway.router.request.identity import Identity
from headway.router.request.reply import Reply
from headway.router.selection.result import Selection
from headway.router.signals.kind import Recipe
from headway.router.stores.replays.keeping import Replays

_RETRIED = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class _Ended:
    """`result`: completed, failed, dropped, sampled_out; `reason` is a word from a fixed list."""

    result: str
    reason: str
    status: int | None = None
    body: dict[str, Any] | None = None
    size: int = 0
    attempts: int = 0


class ShadowDispatch(Plugin):
    """The copy is what the backend gets, after all other plugins, never streamed; it leaves when the live answer has begun. Without a free place it is
    dropped: the live request never waits for it and never fails because of it. Of headers only those go along that a header_mutation of the decision
    set and `forward_headers` names."""

    type = "shadow_dispatch"

    def __init__(
        self, configuration: ShadowDispatchPlugin, replays: Callable[[], Replays | None], services: Services, draw: Callable[[], float] = random.random
    ) -> None:
        self._configuration = configuration
        self._replays = replays
        self._services = services
        self._draw = draw
        self._slots = asyncio.Semaphore(configuration.max_concurrency)
        self._held = 0  # copies that run or wait
        self._forwarded = {name.strip().lower() for name in configuration.forward_headers} - CREDENTIAL_HEADERS

    async def before(self, context: RequestContext) -> Reply | None:
        """Only remembers the request: the copy is made of what the backend gets."""
        context.notes[self] = (context.body, {name: value for name, value in context.upstream_headers.items() if name in self._forwarded})
        return None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        self._dispatch(context)
        return reply

    async def failed(self, context: RequestContext, error: Exception) -> None:
        self._dispatch(context)

    def _dispatch(self, context: RequestContext) -> None:
        settings = self._configuration
        if self not in context.notes or (context.selection and context.selection.model == settings.model):
            return
        if self._draw() >= settings.sample_rate:
            self._count(context, _Ended("sampled_out", "sampled_out"))
        elif self._held >= settings.max_concurrency + settings.max_queue_depth:
            self._count(context, _Ended("dropped", "queue_full"))
        else:
            self._held += 1
            self._services.background.start(self._run(context))

    async def _run(self, context: RequestContext) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._configuration.timeout_seconds), self._slots:
                ended = await self._ask(context)
        except TimeoutError:
            ended = _Ended("failed", "timeout")
        finally:
            self._held -= 1
        seconds = time.monotonic() - began
        self._services.metrics.observe("sr_shadow_dispatch_latency_seconds", seconds, context.decision_name or "")
        self._count(context, ended)
        store = self._replays()
        if store is not None and context.replay_id is not None:
            await asyncio.to_thread(self._note, store, context, ended, seconds)

    async def _ask(self, context: RequestContext) -> _Ended:
        for attempt in range(1, self._configuration.max_retries + 2):
            last = attempt == self._configuration.max_retries + 1
            try:
                reply = await context.generation.upstreams.send(self._copy(context))
            except HeadwayError as error:
                if last:
                    return _Ended("failed", error.reason if error.reason == "timeout" else "transport_error", attempts=attempt)
                continue
            if reply.status in _RETRIED and not last:
                await reply.close()
                continue
            return await self._judged(reply, attempt)
        raise AssertionError("the last attempt returns")

    async def _judged(self, reply: Reply, attempts: int) -> _Ended:
        size = len(reply.raw) if reply.raw is not None else len(orjson.dumps(reply.body))
        if size > self._configuration.max_response_bytes:
            return _Ended("failed", "response_too_large", reply.status, size=size, attempts=attempts)
        if reply.status != 200:
            return _Ended("failed", "upstream_status", reply.status, size=size, attempts=attempts)
        try:
            body = body_of(reply)
        except ValueError:
            return _Ended("failed", "malformed_response", reply.status, size=size, attempts=attempts)
        if not body.get("choices"):
            return _Ended("failed", "malformed_response", reply.status, size=size, attempts=attempts)
        return _Ended("completed", "completed", reply.status, body, size, attempts)

    def _copy(self, context: RequestContext) -> RequestContext:
        body, headers = context.notes[self]
        body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        deadline = Deadline.after(self._configuration.timeout_seconds, visible=True)
        copy = RequestContext(context.generation, body, {}, Identity(), deadline, f"{context.request_id}-shadow", context.protocol)
        model = self._configuration.model
        copy.selection = Selection(model, "shadow", "a copy of a live request", order=(model or "",))
        copy.upstream_headers = dict(headers)
        return copy

    def _count(self, context: RequestContext, ended: _Ended) -> None:
        self._services.metrics.count("sr_shadow_dispatch", context.decision_name or "", ended.result, ended.reason)

    def _note(self, store: Replays, context: RequestContext, ended: _Ended, seconds: float) -> None:
        text = text_of_body(ended.body) if ended.body else ""
        outcome: dict[str, Any] = {
            "source": "shadow_dispatch",
            "target": "model",
            "target_ref": self._configuration.model,
            "verdict": ended.result,
            "reason": ended.reason,
            "metadata": {
                "status_code": ended.status,
                "attempts": ended.attempts,
                "latency_ms": seconds * 1000,
                "response_bytes": ended.size,
                "usage": ended.body.get("usage") if ended.body else None,
                "sha256": hashlib.sha256(text.encode()).hexdigest() if ended.body else None,
                "primary_model": context.selection.model if context.selection else None,
            },
        }
        if self._configuration.capture_response_body and ended.body:
            outcome["metadata"]["text"] = text.encode()[: self._configuration.max_capture_bytes].decode(errors="ignore")
        store.add_outcome(context.replay_id or "", outcome, early=True)


def compile_shadow_dispatch(configuration: ShadowDispatchPlugin, decision: Decision, recipe: Recipe, services: Services) -> ShadowDispatch | None:
    return ShadowDispatch(configuration, lambda: services.replays.current, services) if configuration.enabled else None
