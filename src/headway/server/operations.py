"""The routes that operators and balancers use: version, metrics, load, models."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway import __version__
from headway.server.respond import json_response
from headway.server.state import state_of
from headway.telemetry.metrics import CONTENT_TYPE
from headway.wire.models import ModelList, model_entry
from headway.wire.operations import ResetAnswer


async def version(request: Request) -> Response:
    return json_response({"version": __version__})


async def metrics(request: Request) -> Response:
    return Response(state_of(request).metrics.render(), headers={"content-type": CONTENT_TYPE})


async def load(request: Request) -> Response:
    """API requests in flight."""
    return json_response({"server_load": state_of(request).load})


async def reset_prefix_cache(request: Request) -> Response:
    """Forget all cached prompts (VLLM_SERVER_DEV_MODE=1); 409 while requests run, since they stand on them."""
    done = await state_of(request).engine.reset_prefix_cache()
    answer: ResetAnswer = {"reset": done}
    return json_response(answer, 200 if done else 409)


async def models(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    root = state.engine.config.model
    entries = [model_entry(name, root, state.created, state.engine.max_model_len) for name in state.names]
    answer: ModelList = {"object": "list", "data": entries}
    return json_response(answer)
