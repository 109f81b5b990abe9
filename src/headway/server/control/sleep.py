"""`POST /sleep`, `POST /wake_up`, `GET /is_sleeping` (VLLM_SERVER_DEV_MODE=1, --enable-sleep-mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from headway.errors import RequestError
from headway.server.control.query import whole_number, word
from headway.server.respond import json_response
from headway.server.state import ServerState, state_of

if TYPE_CHECKING:
    from headway.engine.operations.engine_operations import Mode

MODES: tuple[Mode, ...] = ("abort", "wait", "keep")


async def sleep(request: Request) -> Response:
    """`level` 1 (weights go to a file) or 2 (they are loaded again at the end); `mode` abort, wait or keep: what becomes of requests in
    flight. Empty, 200, when memory was given back."""
    state = state_of(request)
    state.require_ready()
    level = whole_number(request, "level", 1)
    if level == 2 and state.served.adapters.by_name:
        raise RequestError("level 2 forgets the whole engine, and adapters are served", param="level", fix="Use level 1, or unload them first.")
    await state.engine.operations.sleep(level, word(request, "mode", MODES, "abort"))
    _tell(state)
    return Response()


async def wake_up(request: Request) -> Response:
    """`tags` weights and kv_cache, all when absent. Empty, 200, when these parts are back."""
    state = state_of(request)
    state.require_ready()
    tags = request.query_params.getlist("tags")
    await (state.engine.operations.wake_up(tags) if tags else state.engine.operations.wake_up())
    _tell(state)
    return Response()


async def is_sleeping(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    return json_response({"is_sleeping": state.engine.operations.sleep_level is not None})


def _tell(state: ServerState) -> None:
    state.metrics.on_sleep(state.engine.operations.sleep_level)
