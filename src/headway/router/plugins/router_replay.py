"""router_replay: a record of each request of a decision: how it was routed, what came of it, and as much of its content as is allowed."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import HeadwayError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import RouterReplayPlugin
from headway.router.config.document.services import RouterReplay as SharedSettings
from headway.router.generation.services import Services
from headway.router.plugins.capture import Limits, excerpt, tool_trace
from headway.router.plugins.completion import Collected
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.decoding import body_of, chunks_of
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe
from headway.router.stores.replays.keeping import Replays
from headway.router.stores.replays.opened import replay_settings
from headway.router.truth import Truth
from headway.wire.errors import shape_of

TYPE = "router_replay"


@dataclass(frozen=True, slots=True)
class Capture:
    """`request` is off for a decision that masks its requests: a record must not know what a backend may not."""

    request: bool
    response: bool
    personal: bool
    limits: Limits


class RouterReplay(Plugin):
    """First of all plugins, so that its record has the last word of every other. Records are written beside the request; when too many wait they are
    dropped and counted. A stream's record is made at its end, also when the client leaves before it."""

    type = TYPE

    def __init__(self, store: Replays, capture: Capture) -> None:
        self._store = store
        self._capture = capture

    async def before(self, context: RequestContext) -> Reply | None:
        context.replay_id = f"replay_{uuid.uuid4().hex[:24]}"
        context.response_headers["x-vsr-replay-id"] = context.replay_id
        return None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        if reply.streams:
            reply.chunks, reply.raw_chunks = self._watched(context, reply, chunks_of(reply)), None
        else:
            self._keep(context, self._record(context, reply.status, reply.path, body_of(reply)))
        return reply

    async def failed(self, context: RequestContext, error: Exception) -> None:
        reason = error.reason if isinstance(error, HeadwayError) else "internal_error"
        self._keep(context, {**self._record(context, shape_of(error).status, "error", None), "error": reason})

    async def _watched(self, context: RequestContext, reply: Reply, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        collected = Collected()
        first: float | None = None
        try:
            async for chunk in chunks:
                first = first or time.monotonic()
                collected.add(chunk)
                yield chunk
        finally:
            record = self._record(context, reply.status, reply.path, collected.body())
            ttft = None if first is None else (first - context.began) * 1000
            self._keep(context, {**record, "stream_complete": collected.complete, "ttft_ms": ttft})

    def _keep(self, context: RequestContext, record: Mapping[str, Any]) -> None:
        self._store.add(record)
        if self._store.dropped:
            context.generation.services.metrics.set("headway_replays_dropped", self._store.dropped)

    def _record(self, context: RequestContext, status: int, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        selection, decision, capture = context.selection, context.decision, self._capture
        record: dict[str, Any] = {
            "id": context.replay_id,
            "timestamp": time.time(),
            "request_id": context.request_id,
            "session_id": context.session,
            "protocol": context.protocol,
            "stream": context.streams,
            "recipe": context.recipe.name if context.recipe else None,
            "requested_model": context.view.model,
            "decision": context.decision_name,
            "confidence": decision.confidence if decision else None,
            "matched_rules": list(decision.matched_rules) if decision else [],
            "signals": sorted(each.key for each in context.observations if each.truth is Truth.TRUE),
            "signal_errors": {each.key: each.reason for each in context.observations if each.truth is Truth.UNKNOWN and each.reason},
            "projections": dict(context.projection_scores),
            "selected_model": selection.model if selection else None,
            "selection": {"method": selection.method, "reason": selection.reason, "status": selection.status} if selection else None,
            "attempts": list(context.attempts),
            "status": status,
            "response_path": path,
            "cache_status": context.cache_status,
            "cache_similarity": context.response_headers.get("x-vsr-cache-similarity"),
            "warnings": list(context.warnings),
            "usage": body.get("usage") if body else None,
            "latency_ms": (time.monotonic() - context.began) * 1000,
            "timings_ms": dict(context.timings_ms),
        }
        if capture.personal:
            record["user"] = context.identity.user
        if capture.request:
            text, cut = excerpt(dict(context.original), capture.limits.body_bytes, capture.personal)
            record |= {"request_body": text, "request_body_truncated": cut}
            record["tool_trace"] = tool_trace(context.original.get("messages"), capture.limits, capture.personal)
        if capture.response and body is not None:
            text, cut = excerpt(dict(body), capture.limits.body_bytes, capture.personal)
            record |= {"response_body": text, "response_body_truncated": cut}
        return record


def compile_router_replay(configuration: RouterReplayPlugin, decision: Decision, recipe: Recipe, services: Services) -> RouterReplay | None:
    """None when neither the decision nor, where it says nothing, the service for all switches records on."""
    shared = replay_settings(recipe.document)
    enabled = shared.enabled if configuration.enabled is None else configuration.enabled
    if not enabled:
        return None
    masks = any(plugin.type == "masking" and plugin.configuration.get("enabled", True) for plugin in decision.plugins or ())
    return RouterReplay(services.replays.open(recipe.document, services.state), _capture(configuration, shared, masks))


def _capture(own: RouterReplayPlugin, shared: SharedSettings, masks: bool) -> Capture:
    def said(name: str, otherwise: Any) -> Any:
        values = (getattr(own, name), getattr(shared, name), otherwise)
        return next(value for value in values if value is not None)

    usual = Limits()
    limits = Limits(
        said("max_body_bytes", usual.body_bytes), said("max_tool_trace_bytes", usual.trace_bytes), said("max_tool_trace_steps", usual.trace_steps)
    )
    request = said("capture_request_body", False) and not masks
    return Capture(request, said("capture_response_body", False), said("capture_personal_data", False), limits)
