"""The body of `POST /v1/bundle`, checked: tasks for several surfaces and models in one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import RequestError
from headway.wire import checked
from headway.wire.classify import MAX_MILLISECONDS


@dataclass(frozen=True, slots=True)
class BundleTask:
    """`body` is checked by its surface; what is wrong in it is the failure of this task only."""

    id: str
    surface: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BundleRequest:
    tasks: tuple[BundleTask, ...]
    deadline_ms: float | None = None


def parse_bundle(fields: Mapping[str, Any], surfaces: Collection[str], max_tasks: int) -> BundleRequest:
    """Raises RequestError: `body_too_large` for more than `max_tasks` tasks, else `invalid_request`."""
    checked.only(fields, {"tasks", "options"})
    options = checked.objects(fields, "options")
    checked.only(options, {"deadline_ms"}, "options")
    tasks = checked.required(fields, "tasks")
    if not isinstance(tasks, list) or not tasks:
        raise RequestError("tasks must be a list of at least one task", param="tasks")
    if len(tasks) > max_tasks:
        raise RequestError(
            f"The bundle has {len(tasks)} tasks, the limit is {max_tasks}", reason="body_too_large", param="tasks",
            fix="Send fewer, or raise --max-bundle-tasks.",
        )  # fmt: skip
    parsed = tuple(_task(task, f"tasks[{index}]", surfaces) for index, task in enumerate(tasks))
    if len({task.id for task in parsed}) < len(parsed):
        raise RequestError("two tasks have the same id", param="tasks")
    return BundleRequest(parsed, checked.number(options, "deadline_ms", 0, MAX_MILLISECONDS, above=True))


def _task(task: Any, name: str, surfaces: Collection[str]) -> BundleTask:
    if not isinstance(task, dict):
        raise checked.wrong(name, "an object", task)
    checked.only(task, {"id", *surfaces}, name)
    identity = checked.text(task, "id", f"{name}.id")
    if not identity:
        raise RequestError(f"{name}.id must be text that is not empty", param="tasks")
    found = [surface for surface in surfaces if surface in task]
    if len(found) != 1:
        raise RequestError(f"{name} must have exactly one of {', '.join(surfaces)}, got {len(found)}", param="tasks")
    body = task[found[0]]
    if not isinstance(body, dict):
        raise checked.wrong(f"{name}.{found[0]}", "an object", body)
    return BundleTask(identity, found[0], body)
