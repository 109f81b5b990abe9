"""`POST /v1/systemone`, `/v1/systemone/batch` and `/v1/decisions`: from the body to the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fastapi import Request
from starlette.responses import Response

from headway.errors import HeadwayError, QueueFullError
from headway.http.client_watch import ClientWatch
from headway.server.decisions.body import SHORT_BODY, model_of, read_object, terms_of
from headway.server.decisions.planning import planner_of
from headway.server.decisions.refusals import Refuse, refuse_decisions, refuse_system_one
from headway.server.decisions.rounds import run_plan
from headway.server.request_ids import public_id
from headway.server.state import ServerState, state_of
from headway.wire.decision_batch import batch_answer, read_decision_batch
from headway.wire.decision_body import read_decision_body
from headway.wire.decisions import DecisionRequest
from headway.wire.errors import shape_of
from headway.wire.openai_decision_answer import openai_answer
from headway.wire.openai_decisions import is_openai, read_openai_decisions
from headway.wire.strict_json import dumps

_log = logging.getLogger(__name__)
Fields: TypeAlias = Mapping[str, Any]
Render: TypeAlias = Callable[[dict[str, Any], str], dict[str, Any]]
"""What the plan returned, the name of the model -> the body of the answer."""


@dataclass(frozen=True, slots=True)
class Questions:
    """One body, read."""

    request: DecisionRequest
    render: Render = lambda body, model: {"model": model, **body}


async def create_systemone(request: Request) -> Response:
    return await _answered(request, _read_system_one, refuse_system_one)


async def create_systemone_batch(request: Request) -> Response:
    return await _answered(request, lambda fields: Questions(read_decision_batch(fields), batch_answer), refuse_system_one)


async def create_decisions(request: Request) -> Response:
    """OpenAI's form when there is `input`, else as `/v1/systemone`."""
    return await _answered(request, _read_decisions, refuse_decisions)


def _read_system_one(fields: Fields) -> Questions:
    return Questions(read_decision_body(fields))


def _read_decisions(fields: Fields) -> Questions:
    if not is_openai(fields):
        return _read_system_one(fields)
    asked = read_openai_decisions(fields)
    return Questions(asked.request, lambda body, model: openai_answer(body, asked.questions, model))


async def _answered(request: Request, read: Callable[[Fields], Questions], refuse: Refuse) -> Response:
    state = state_of(request)
    fields: dict[str, Any] | None = None
    identity = public_id(request, None)
    try:
        state.require_ready()
        fields, size = await read_object(request)
        response = Response(dumps(await _answer(state, request, read, fields, size, identity)), media_type="application/json")
    except HeadwayError as error:
        if isinstance(error, QueueFullError):
            state.metrics.on_rejection(error.param or error.reason)
        if shape_of(error).status == 500:
            _log.error("%s failed: %s", request.url.path, error)
        response = refuse(error, fields)
    response.headers["x-typesafe-request-id"] = identity
    return response


async def _answer(
    state: ServerState, request: Request, read: Callable[[Fields], Questions], fields: dict[str, Any], size: int, identity: str
) -> dict[str, Any]:
    model = model_of(state, fields)
    questions = read(fields)
    terms = terms_of(state, request, fields, questions.request)
    planner = await planner_of(state)
    watch = ClientWatch(request.receive, state.closing)
    try:
        work = run_plan(state.engine, planner(questions.request), terms, f"decision-{identity}", elsewhere=size > SHORT_BODY)
        return questions.render(await watch.run(work), model)
    finally:
        watch.close()
