"""`GET /kv_event_sources`: where the KV events of this server are published, for whoever follows them."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.engine.kv_events.settings import read_kv_events
from headway.server.respond import json_response
from headway.server.state import state_of
from headway.wire.operations import KVEventSource


async def kv_event_sources(request: Request) -> Response:
    """Addresses as the operator gave them (--kv-events-config); none where nothing is published."""
    settings = read_kv_events(state_of(request).engine.config.kv_events_config)
    sources: list[KVEventSource] = []
    if settings.publishes:
        sources.append({"data_parallel_rank": 0, "endpoint": settings.endpoint, "replay_endpoint": settings.replay_endpoint, "topic": settings.topic})
    return json_response(sources)
