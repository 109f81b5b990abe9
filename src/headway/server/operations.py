"""The routes that operators and balancers use: version, metrics, load, models."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway import __version__
from headway.server.decisions.models import decision_models
from headway.server.respond import json_response
from headway.server.state import state_of
from headway.telemetry.metrics import CONTENT_TYPE
from headway.wire.models import ModelList, model_entry


async def version(request: Request) -> Response:
    return json_response({"version": __version__})


async def metrics(request: Request) -> Response:
    return Response(state_of(request).metrics.render(), headers={"content-type": CONTENT_TYPE})


async def load(request: Request) -> Response:
    """API requests in flight."""
    return json_response({"server_load": state_of(request).load})


async def models(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    root = state.engine.config.model
    entries = [model_entry(name, root, state.created, state.engine.max_model_len) for name in state.names]
    for name, adapter in state.served.adapters.by_name.items():
        parent = adapter.request.base_model_name or state.names[0]
        entries.append(model_entry(name, adapter.request.lora_path, state.created, state.engine.max_model_len, parent))
    answer: ModelList = {"object": "list", "data": entries, "models": decision_models(state)}
    return json_response(answer)
