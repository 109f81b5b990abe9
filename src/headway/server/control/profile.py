"""`POST /start_profile` and `/stop_profile` (--profiler-config)."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.server.state import state_of


async def start_profile(request: Request) -> Response:
    """Empty, 200; 409 when a profile is running."""
    state = state_of(request)
    state.require_ready()
    await state.engine.operations.start_profile()
    return Response()


async def stop_profile(request: Request) -> Response:
    """Empty, 200, when the trace is written; 409 when none is running."""
    state = state_of(request)
    state.require_ready()
    await state.engine.operations.stop_profile()
    return Response()
