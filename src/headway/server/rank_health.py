"""What `/health` says of the processes that compute the model, and of an engine that starts again because one of them failed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from headway.engine.distributed.rank_group import RankStatus
from headway.server.engine_port import StatusPort
from headway.server.respond import json_response
from headway.wire.errors import scrub


def rank_parts(ranks: Sequence[RankStatus]) -> dict[str, Any]:
    """`ranks`, where there are several processes, with seconds to the millisecond."""
    if not ranks:
        return {}
    return {"ranks": [dataclasses.asdict(dataclasses.replace(each, silent_seconds=round(each.silent_seconds, 3))) for each in ranks]}


def restarting(status: StatusPort) -> Response:
    """503 with the rank that failed and when the next attempt begins, which `Retry-After` says, too."""
    restart = status.restart
    if restart is None:  # just now it was something else
        return json_response({"status": "restarting", "reason": "rank_failed"}, 503)
    body = {
        "status": "restarting",
        "reason": "rank_failed",
        "message": scrub(restart.message),
        "rank": restart.rank,
        "host": restart.host,
        "why": scrub(restart.why),
        "attempt": restart.attempt,
        "attempts": restart.attempts,
        "next_attempt_seconds": round(restart.starts_in, 3),
        "progress": round(status.progress, 4),
    }
    response = json_response(body, 503)
    response.headers["retry-after"] = str(max(1, math.ceil(restart.starts_in)))
    return response
