"""RequestContext: what is carried along with one request, from its bytes to its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway.router.decisions.result import DecisionResult
from headway.router.observation import Observations
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.request.view import RequestView
from headway.router.selection.result import Selection

if TYPE_CHECKING:
    from headway.router.generation.generation import CompiledRecipe, Generation


@dataclass(slots=True)
class RequestContext:
    """The stages fill it in order; each is a function of it and of its `generation`, which never changes under a request.

    `body` is the request as chat completions; plugins may replace it (never change it in place: `original` is what the client sent, and the
    identity of caches). `headers` are lower-case, and hold nothing that an untrusted client may not say. `recipe` is None for a model that is
    addressed directly: then there are no signals, decisions and plugins. `debug` says that the caller asked for a trace and may have it.
    """

    generation: Generation
    body: dict[str, Any]
    headers: Mapping[str, str]
    identity: Identity
    deadline: Deadline
    request_id: str
    protocol: str = "chat"  # chat, completions, responses, anthropic
    listener: str = ""
    session: str | None = None
    debug: bool = False
    dry_run: bool = False  # a preview: nothing is sent, stored or counted as traffic
    sampling_seed: int | None = None
    began: float = field(default_factory=time.monotonic)

    original: Mapping[str, Any] = field(init=False)
    view: RequestView = field(init=False)
    recipe: CompiledRecipe | None = None
    observations: Observations = field(default_factory=Observations)
    projection_scores: dict[str, float] = field(default_factory=dict)
    decision: DecisionResult | None = None
    selection: Selection | None = None
    upstream_headers: dict[str, str | None] = field(default_factory=dict)  # lower-case; what plugins set for the backend, None takes one away
    response_headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)  # words of x-vsr-response-warnings
    timings_ms: dict[str, float] = field(default_factory=dict)
    attempts: list[str] = field(default_factory=list)  # "backend: outcome", in order
    side_usage: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)  # model and answer of further calls that this request cost
    cache_status: str | None = None  # hit, miss, bypass
    notes: dict[object, Any] = field(default_factory=dict)  # what a plugin remembers between its hooks, by the plugin
    replay_id: str | None = None

    def __post_init__(self) -> None:
        self.original = self.body
        self.view = RequestView(self.body, self.identity)

    @property
    def streams(self) -> bool:
        return self.original.get("stream") is True

    @property
    def decision_name(self) -> str | None:
        return self.decision.chosen if self.decision else None
