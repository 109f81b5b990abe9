"""`POST /swap_model` and `GET /swap_model` (VLLM_SERVER_DEV_MODE=1)."""

from __future__ import annotations

import dataclasses

from fastapi import Request
from starlette.responses import Response

from headway.errors import NotFoundError, RequestError
from headway.server.intake import read_fields
from headway.server.respond import json_response
from headway.server.state import ServerState, state_of
from headway.server.swap.model_swap import ModelSwap
from headway.server.swap.next_config import next_config


async def swap_model(request: Request) -> Response:
    """`{"model": "...", "quantization": "int8", ...}`: answered when the new model serves, or when it will not."""
    state = state_of(request)
    state.require_ready()
    if state.serving.adapters.by_name:
        raise RequestError("adapters are served, and they fit the model that runs only", param="model", fix="Unload them first.")
    config = next_config(state.engine.config, state.names, await read_fields(request))
    return json_response(dataclasses.asdict(await _swap(state).to(config)))


async def swap_state(request: Request) -> Response:
    """How far a swap is."""
    return json_response(_swap(state_of(request)).look())


def _swap(state: ServerState) -> ModelSwap:
    if state.swap is None:
        raise NotFoundError("This server cannot load another model", reason="route_not_found")
    return state.swap
