"""`POST /pause`, `/resume`, `/abort_requests`, `GET /is_paused` (VLLM_SERVER_DEV_MODE=1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import Request
from starlette.responses import Response

from headway.errors import RequestError
from headway.server.control.query import truth, word
from headway.server.control.sleep import MODES
from headway.server.intake import read_fields
from headway.server.respond import json_response
from headway.server.state import state_of

if TYPE_CHECKING:
    from headway.engine.operations.engine_operations import Mode

_MOST_IDS: Final = 4096


async def pause(request: Request) -> Response:
    """`mode` abort, wait or keep: what becomes of requests in flight; `clear_cache` (true) forgets cached prefixes, except with keep. New
    requests wait until `/resume`."""
    state = state_of(request)
    state.require_ready()
    default: Mode = "wait" if truth(request, "wait_for_inflight_requests", False) else "abort"
    mode = word(request, "mode", MODES, default)
    await state.engine.operations.pause(mode, clear_cache=truth(request, "clear_cache", True))
    return json_response({"status": "paused"})


async def resume(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    await state.engine.operations.resume()
    return json_response({"status": "resumed"})


async def is_paused(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    return json_response({"is_paused": state.engine.operations.is_paused})


async def abort_requests(request: Request) -> Response:
    """`{"request_ids": ["chatcmpl-..."]}`, the ids that answers carry; none or an empty list ends all requests."""
    state = state_of(request)
    state.require_ready()
    ids: Any = (await read_fields(request)).get("request_ids") or []
    if not isinstance(ids, list) or not all(isinstance(each, str) and each for each in ids) or len(ids) > _MOST_IDS:
        raise RequestError(f"request_ids must be a list of up to {_MOST_IDS} texts", param="request_ids")
    count = await state.engine.operations.abort_requests(ids)
    return json_response({"status": "aborted", "aborted": count})
