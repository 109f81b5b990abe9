"""`GET /health` and `/ping`: may requests be sent here? Answered on the event loop, which never computes."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from headway.server.progress import Progress
from headway.server.rank_health import rank_parts, restarting
from headway.server.respond import json_response
from headway.server.state import ServerState, state_of
from headway.wire.errors import scrub

STALLED = "engine_stalled"


async def health(request: Request) -> Response:
    """200 `{"status":"ok"}` when requests can be served; else 503 with what is going on.

    An engine that somebody paused or put to sleep is well, as in vLLM: its status says so. Where several processes compute the model, `ranks`
    tells of each.
    A ready engine's progress is in the headers `x-engine-steps`, `x-engine-still-seconds`, `x-engine-running` and
    `x-engine-waiting`, with `?verbose=1` in the body as well. An engine that has work and makes no step is not healthy.
    """
    state = state_of(request)
    status = state.engine.status
    if state.is_closing:
        return json_response({"status": "stopping"}, 503)
    if status.stage in ("dead", "stopped"):
        return json_response({"status": status.stage, "reason": scrub(status.error or "no reason given")}, 503)
    if status.stage == "restarting":
        return restarting(status)
    if status.stage != "ready":
        return json_response({"status": "loading", "stage": status.stage, "progress": round(status.progress, 4)}, 503)
    ranks = rank_parts(state.engine.ranks)
    if status.held is not None:
        return json_response({"status": status.held, **ranks})
    return _moving(state, state.progress.look(status), ranks, verbose=request.query_params.get("verbose") == "1")


def _moving(state: ServerState, seen: Progress, ranks: dict[str, Any], verbose: bool) -> Response:
    counts = {
        "steps": seen.steps,
        "still_seconds": round(seen.still_seconds, 3),
        "running": seen.running,
        "waiting": seen.waiting,
    }
    body: dict[str, Any] = {"status": "ok", **ranks}
    if seen.stalled:
        message = (
            f"no step has ended for {seen.still_seconds:.0f} s while {seen.requests} request(s) wait "
            f"(--health-stall-seconds {state.settings.health_stall_seconds:g})"
        )
        body = {"status": "stalled", "reason": STALLED, "message": message, **ranks}
    response = json_response(body | (counts if verbose or seen.stalled else {}), 503 if seen.stalled else 200)
    for name, value in counts.items():
        response.headers[f"x-engine-{name.replace('_', '-')}"] = str(value)
    return response
