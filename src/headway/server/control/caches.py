"""`POST /reset_prefix_cache` and `/reset_mm_cache` (VLLM_SERVER_DEV_MODE=1)."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.server.control.query import truth
from headway.server.respond import json_response
from headway.server.state import state_of
from headway.wire.operations import ResetAnswer


async def reset_prefix_cache(request: Request) -> Response:
    """Forget all cached prompts; 409 while requests run, since they stand on them, unless `reset_running_requests` has them computed again.
    `reset_external` (or `reset_connector`) forgets what KV offloading keeps, too."""
    running = truth(request, "reset_running_requests", False)
    offloaded = truth(request, "reset_external", truth(request, "reset_connector", False))
    done = await state_of(request).engine.reset_prefix_cache(running=running, offloaded=offloaded)
    answer: ResetAnswer = {"reset": done}
    return json_response(answer, 200 if done else 409)


async def reset_mm_cache(request: Request) -> Response:
    """There is no cache of images: it is empty whenever this is asked."""
    state_of(request).require_ready()
    answer: ResetAnswer = {"reset": True}
    return json_response(answer)
