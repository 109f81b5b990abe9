"""A POST from its first byte to its answer: phases, errors in the route's own form, a client that leaves."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from starlette.types import Receive

from headway.http.client_watch import ClientLeft, ClientWatch
from headway.runtime.http.answer import Answer
from headway.runtime.http.answering import answer_call, log_defect, read_call
from headway.runtime.http.bundle import answer_bundle
from headway.runtime.http.call import Endpoint, Fields, Refuse
from headway.runtime.http.intake import read_object
from headway.runtime.http.phases import Phases
from headway.runtime.http.refusal import worker_refusal
from headway.runtime.http.state import WorkerState
from headway.wire.strict_json import dumps

CLIENT_LEFT = 499  # not a status of HTTP; it keeps such requests apart in the metrics
Work: TypeAlias = Callable[[WorkerState, dict[str, Any], int, Phases], Awaitable[dict[str, Any]]]
"""State, JSON object, bytes that it had, phases to fill -> the body of the answer."""


@dataclass(frozen=True, slots=True)
class PostRoute:
    """See `Endpoint` for the fields that have the same name."""

    path: str
    name: str
    work: Work
    style: Callable[[Fields | None], Refuse] = lambda fields: worker_refusal
    max_bytes: int | None = None


def route_of(endpoint: Endpoint) -> PostRoute:
    return PostRoute(endpoint.path, endpoint.name, partial(_answer_one, endpoint), endpoint.style, endpoint.max_bytes)


BUNDLE = PostRoute("/v1/bundle", "bundle", answer_bundle)


async def respond(state: WorkerState, route: PostRoute, headers: Mapping[bytes, bytes], receive: Receive) -> Answer | None:
    """None when the client left."""
    phases = Phases()
    fields: dict[str, Any] | None = None
    state.load += 1
    status = CLIENT_LEFT
    try:
        try:
            state.require_open()
            announced = headers.get(b"content-length", b"").decode("latin-1")
            with state.bodies.room_for(announced, state.limits_for(route.max_bytes).max_bytes):
                fields, size = await read_object(state, headers, receive, route.max_bytes)
                phases.parse = time.perf_counter() - phases.began
                body = await _watched(state, receive, route.work(state, fields, size, phases))
            began = time.perf_counter()
            answer = Answer(200, dumps(body))
            phases.serialize = time.perf_counter() - began
        except ClientLeft:
            return None
        except Exception as error:
            log_defect(route.name, error)
            refusal = route.style(fields)(error)
            answer = Answer(refusal.status, dumps(refusal.body), headers=dict(refusal.headers))
        status = answer.status
    finally:
        state.load -= 1
        total = time.perf_counter() - phases.began
        state.metrics.on_request(route.name, status, total)
    answer.headers["server-timing"] = phases.header(total)
    return answer


async def _watched(state: WorkerState, receive: Receive, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    watch = ClientWatch(receive, state.closing)
    try:
        return await watch.run(work)  # type: ignore[arg-type]
    finally:
        watch.close()


async def _answer_one(endpoint: Endpoint, state: WorkerState, fields: dict[str, Any], size: int, phases: Phases) -> dict[str, Any]:
    began = time.perf_counter()
    call = await read_call(state, endpoint, fields, size)
    phases.parse += time.perf_counter() - began
    return await answer_call(state, endpoint, call, size, phases)
