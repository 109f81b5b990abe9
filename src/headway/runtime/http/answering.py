"""One call from its JSON object to its body: choose the model, plan, run, render."""

from __future__ import annotations

import logging
from typing import Any

from headway.errors import HeadwayError
from headway.runtime.execution.planned import Elsewhere, Planned, begin, finish, submit
from headway.runtime.http.call import Call, Endpoint, Fields
from headway.runtime.http.intake import SHORT_BODY
from headway.runtime.http.meta import add_meta
from headway.runtime.http.model_choice import choose
from headway.runtime.http.phases import Phases
from headway.runtime.http.state import WorkerState
from headway.runtime.served_model import Running, ServedModel
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)


def deadline_of(began: float, milliseconds: float | None) -> float | None:
    """On the clock of `began`, which is when the request came."""
    return None if milliseconds is None else began + milliseconds / 1000


async def read_call(state: WorkerState, endpoint: Endpoint, fields: Fields, size: int) -> Call:
    """Raises RequestError."""
    if size <= SHORT_BODY:
        return endpoint.read(fields)
    return await state.plan_elsewhere(lambda: endpoint.read(fields))


def planning_place(state: WorkerState, size: int, call: Call) -> Elsewhere:
    return None if size <= SHORT_BODY and not call.is_slow_to_plan else state.plan_elsewhere


async def answer_call(
    state: WorkerState, endpoint: Endpoint, call: Call, size: int, phases: Phases
) -> dict[str, Any]:
    """The body of the answer. Raises RequestError and the other errors of the table."""
    model, running = choose(state.models, call, endpoint, state.settings.decision_alias)
    planned: Planned | None = None
    try:
        planned = await begin(running.model.planners[call.surface](call.request), planning_place(state, size, call))
        submit(running.scheduler, [planned], phases.began, [deadline_of(phases.began, call.options.deadline_ms)])
        body = await finish(running.scheduler, planned)
        return completed(state, call, model, running, planned, body)
    finally:
        if planned is not None:
            phases.take(planned)


def completed(
    state: WorkerState, call: Call, model: ServedModel, running: Running, planned: Planned, body: dict[str, Any]
) -> dict[str, Any]:
    """The plan's result as the surface answers it; counted."""
    usage = body.get("usage") or {}
    tokens = usage.get("input_tokens", usage.get("prompt_tokens", 0))
    if isinstance(tokens, int):
        state.metrics.on_input_tokens(tokens)
    if truncated := _truncated(body):
        state.metrics.on_truncated(model.name, truncated)
    for kind, outcome in call.outcomes(body):
        state.metrics.on_question(kind, outcome)
    answer = call.render(body, model)
    add_meta(answer, running, planned, call.options.return_meta)
    return answer


def _truncated(body: dict[str, Any]) -> int:
    """How many items say that they were cut: entries of `results` (classify, rerank) or `data` (embeddings)."""
    items = body.get("results") or body.get("data") or ()
    return sum(bool(item.get("input", {}).get("truncated")) for item in items)


def log_defect(name: str, error: BaseException) -> None:
    """Errors of our own side are logged, without the values that they arose from."""
    if not isinstance(error, HeadwayError):
        _log.error("%s failed: %s", name, describe_defect(error))
