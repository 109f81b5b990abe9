"""Call and Endpoint: how a surface plugs into the server. A surface reads its body into a Call; all the rest is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headway.runtime.http.refusal import Refusal, worker_refusal
from headway.runtime.loaded_model import Surface
from headway.runtime.served_model import ServedModel
from headway.wire.classify import CommonOptions

Fields: TypeAlias = Mapping[str, Any]
"""A JSON object."""
Render: TypeAlias = Callable[[dict[str, Any], ServedModel], dict[str, Any]]
"""What the planner returned -> the body of the answer."""
Refuse: TypeAlias = Callable[[BaseException], Refusal]


def with_model(body: dict[str, Any], model: ServedModel) -> dict[str, Any]:
    """The body of the worker's own routes: the planner's, under the name of the model."""
    return {"model": model.name, **body}


def no_questions(body: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """The request asks none."""
    return ()


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request. `request` is what `LoadedModel.planners[surface]` takes; `model` is the name as it was sent.

    `render` makes the body of the answer from what the plan returned (`meta` is merged into it afterwards). `outcomes`
    are (type, "answered" or the code of the failure) of its questions, for the metrics. `is_slow_to_plan`: however small the
    body, its planning must not hold up the event loop (a picture of a few bytes may have millions of pixels).
    """

    surface: Surface
    request: Any
    model: str | None = None
    options: CommonOptions = field(default_factory=CommonOptions)
    render: Render = with_model
    outcomes: Callable[[dict[str, Any]], Iterable[tuple[str, str]]] = no_questions
    is_slow_to_plan: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A POST route. `read` raises RequestError; it runs on the event loop for small bodies, on a thread for large ones.

    `style` chooses how errors look, from the body (None while there is none). `has_aliases`: the names of
    --decision-alias mean the default model: the first one that serves the surface. `is_model_optional`: an absent name means it as well, however
    many models there are; otherwise a name is needed as soon as there are several. `names_anything`: so do unknown names.
    `max_bytes` of a body (None: the server's setting).
    """

    path: str
    name: str  # the `endpoint` label of metrics
    read: Callable[[Fields], Call]
    style: Callable[[Fields | None], Refuse] = lambda fields: worker_refusal
    has_aliases: bool = False
    is_model_optional: bool = False
    names_anything: bool = False
    max_bytes: int | None = None
