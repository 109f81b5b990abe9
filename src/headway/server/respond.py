"""Run the engine requests of one HTTP request and answer, streamed or whole. A client that leaves ends them at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

import orjson
from fastapi import Request
from starlette.responses import Response

from headway.engine.outputs import RequestOutput
from headway.errors import QueueFullError
from headway.server.client_watch import ClientLeft, ClientWatch
from headway.server.event_stream import Frames, open_stream
from headway.server.merged_outputs import EngineRequest, Outputs, merged
from headway.server.state import ServerState

_log = logging.getLogger(__name__)
_CLIENT_LEFT = 499  # nobody reads it; it keeps such requests apart in the HTTP metrics


async def respond(
    state: ServerState,
    request: Request,
    engine_requests: Sequence[EngineRequest],
    frames: Callable[[Outputs], Frames] | None,
    whole: Callable[[list[RequestOutput]], object],
) -> Response:
    """`frames` turns outputs into SSE frames and is None for an answer in one piece; `whole` makes that from the last
    output of each engine request."""
    outputs = merged(state.engine, engine_requests)
    watch = ClientWatch(request.receive, state.closing)
    streaming = False
    try:
        if frames is not None:
            response: Response = await open_stream(frames(outputs), watch, state.settings.sse_keep_alive_interval)
            streaming = True
            return response
        finals = await watch.run(_finals(outputs, len(engine_requests)))
        return json_response(whole(finals))
    except ClientLeft:
        _log.debug("a client left before its answer")
        return Response(status_code=_CLIENT_LEFT)
    except QueueFullError as error:
        state.metrics.on_rejection(error.param or error.reason)
        raise
    finally:
        if not streaming:
            watch.close()


def json_response(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")


async def _finals(outputs: Outputs, count: int) -> list[RequestOutput]:
    """The last output of each engine request, in order."""
    last: dict[int, RequestOutput] = {}
    async with aclosing(outputs):
        async for index, output in outputs:
            last[index] = output
    return [last[i] for i in range(count)]
