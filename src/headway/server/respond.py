"""Run the engine requests of one HTTP request and answer, streamed or whole. A client that leaves ends them at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

import orjson
from fastapi import Request
from starlette.responses import Response

from headway.engine.outputs import RequestOutput
from headway.errors import QueueFullError
from headway.http.client_watch import ClientWatch
from headway.server.deadline import seconds_allowed
from headway.server.event_stream import OPENAI, Frames, StreamManner, open_stream
from headway.server.load_report import ASKED_BY, report_load
from headway.server.merged_outputs import EngineRequest, Outputs, merged
from headway.server.output_log import logged
from headway.server.state import ServerState
from headway.telemetry.tracing import trace_headers

_log = logging.getLogger(__name__)


async def respond(
    state: ServerState,
    request: Request,
    engine_requests: Sequence[EngineRequest],
    frames: Callable[[Outputs], Frames] | None,
    whole: Callable[[list[RequestOutput]], object],
    manner: StreamManner = OPENAI,
) -> Response:
    """`frames` turns outputs into SSE frames and is None for an answer in one piece; `whole` makes that from the last
    output of each engine request. Raises ClientLeft when the client left before its answer."""
    outputs = outputs_for(state, request, engine_requests)
    watch = ClientWatch(request.receive, state.closing)
    streaming = False
    try:
        if frames is not None:
            response: Response = await open_stream(frames(outputs), watch, state.settings.sse_keep_alive_interval, manner=manner)
            streaming = True
        else:
            response = json_response(whole(await watch.run(finals(outputs, len(engine_requests)))))
        report_load(response, request.headers.get(ASKED_BY), state.engine.status)
        return response
    except QueueFullError as error:
        state.metrics.on_rejection(error.param or error.reason)
        raise
    finally:
        if not streaming:
            watch.close()


def outputs_for(state: ServerState, request: Request, engine_requests: Sequence[EngineRequest]) -> Outputs:
    """Of the engine, with the time and the trace that the HTTP request gives them. Raises RequestError."""
    if state.settings.enable_log_requests:
        _log_request(engine_requests)
    traced = state.engine.config.otlp_traces_endpoint is not None
    caller = trace_headers(request.headers) if traced else {}
    timeout = seconds_allowed(request.headers, state.settings.request_timeout)
    outputs = merged(
        state.engine,
        [replace(each, terms=replace(each.terms, trace_headers=caller, timeout=timeout)) for each in engine_requests],
    )
    return logged(outputs, state.settings.max_log_len) if state.settings.enable_log_outputs else outputs


def _log_request(engine_requests: Sequence[EngineRequest]) -> None:
    """Sizes and sampling, never a text that a client sent."""
    first = engine_requests[0]
    p = first.params
    _log.info(
        "Received request %s: %d prompt(s) of %d tokens, n=%d, max_tokens=%s, temperature=%g, top_p=%g, top_k=%d, seed=%s, %s",
        first.id, len(engine_requests), sum(len(r.token_ids) for r in engine_requests), p.n, p.max_tokens, p.temperature, p.top_p,
        p.top_k, p.seed, p.output_kind.value,
    )  # fmt: skip


def json_response(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status_code=status, media_type="application/json")


async def finals(outputs: Outputs, count: int) -> list[RequestOutput]:
    """The last output of each engine request, in order."""
    last: dict[int, RequestOutput] = {}
    async with aclosing(outputs):
        async for index, output in outputs:
            last[index] = output
    return [last[i] for i in range(count)]
