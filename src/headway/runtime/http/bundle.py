"""`POST /v1/bundle`: tasks for several surfaces and models. Those of one model are admitted together or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.runtime.execution.planned import Planned, begin, finish, submit
from headway.runtime.http.answering import completed, deadline_of, log_defect, planning_place
from headway.runtime.http.call import Call
from headway.runtime.http.endpoints import BUNDLED
from headway.runtime.http.model_choice import choose
from headway.runtime.http.phases import Phases
from headway.runtime.http.refusal import worker_refusal
from headway.runtime.http.state import WorkerState
from headway.runtime.served_model import Running, ServedModel
from headway.wire.bundle import BundleTask, parse_bundle
from headway.wire.strict_json import NotFiniteError, dumps


@dataclass(slots=True)
class _Task:
    """One task on its way: an `error`, or a plan for a model and then a body."""

    task: BundleTask
    error: BaseException | None = None
    call: Call | None = None
    model: ServedModel | None = None
    running: Running | None = None
    planned: Planned | None = None
    deadline: float | None = None
    body: dict[str, Any] | None = None


async def answer_bundle(state: WorkerState, fields: dict[str, Any], size: int, phases: Phases) -> dict[str, Any]:
    """Raises RequestError for a bundle that is malformed or too large; what is wrong with a task is its own result."""
    request = parse_bundle(fields, BUNDLED.keys(), state.settings.max_bundle_tasks)
    state.metrics.on_bundle(len(request.tasks))
    tasks = [_Task(task) for task in request.tasks]
    latest = deadline_of(phases.began, request.deadline_ms)
    for task in tasks:
        await _prepare(state, task, size, phases, latest)
    groups: dict[str, list[_Task]] = {}
    for task in tasks:
        if task.error is None and task.model is not None:
            groups.setdefault(task.model.name, []).append(task)
    for group in groups.values():
        _admit(group, phases.began)
    admitted = [task for task in tasks if task.error is None]
    try:
        await asyncio.gather(*(_complete(state, task) for task in admitted))
    finally:
        _take_phases(phases, admitted)
    return {"results": [_result(task) for task in tasks]}


async def _prepare(state: WorkerState, task: _Task, size: int, phases: Phases, latest: float | None) -> None:
    try:
        endpoint = BUNDLED[task.task.surface]
        task.call = call = endpoint.read(task.task.body)
        task.model, task.running = choose(state.models, call, endpoint, state.settings.decision_alias)
        own = deadline_of(phases.began, call.options.deadline_ms)
        task.deadline = min((moment for moment in (own, latest) if moment is not None), default=None)
        task.planned = await begin(task.running.model.planners[call.surface](call.request), planning_place(state, size, call))
        phases.tokenize += task.planned.tokenize_seconds
    except Exception as error:
        log_defect(f"planning a {task.task.surface} task", error)
        task.error = error


def _admit(group: Sequence[_Task], arrived: float) -> None:
    running = group[0].running
    assert running is not None
    try:
        submit(running.scheduler, [t.planned for t in group if t.planned is not None], arrived, [t.deadline for t in group])
    except Exception as error:
        for task in group:
            task.error = error


async def _complete(state: WorkerState, task: _Task) -> None:
    assert task.running is not None
    assert task.model is not None
    assert task.call is not None
    assert task.planned is not None
    try:
        body = await finish(task.running.scheduler, task.planned)
        task.body = completed(state, task.call, task.model, task.running, task.planned, body)
        dumps(task.body)  # a number that JSON cannot carry is the failure of this task only
    except Exception as error:
        if not isinstance(error, NotFiniteError):
            log_defect(f"a {task.task.surface} task", error)
        task.error, task.body = error, None


def _take_phases(phases: Phases, tasks: Sequence[_Task]) -> None:
    """Of the job that was answered last; a bundle's tasks run side by side."""
    planned = [task.planned for task in tasks if task.planned is not None]
    if planned:
        last = max(planned, key=lambda p: p.queue_seconds + p.forward_seconds + p.post_seconds)
        phases.queue, phases.forward, phases.post = last.queue_seconds, last.forward_seconds, last.post_seconds


def _result(task: _Task) -> dict[str, Any]:
    if task.error is not None:
        refusal = worker_refusal(task.error)
        return {"id": task.task.id, "status": refusal.status, "error": refusal.body["error"]}
    return {"id": task.task.id, "status": 200, task.task.surface: task.body}
