"""Generation: one compiled configuration. A reload makes a new one and swaps one reference; requests in flight keep theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headway.router.config.document.document import Document
from headway.router.decisions.result import DecisionResult
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.generation.services import Services
from headway.router.listener.front import Front
from headway.router.observation import Observations
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.reply import Reply
from headway.router.request.view import RequestView
from headway.router.selection.result import Selection
from headway.router.signals.kind import Recipe


class Extraction(Protocol):
    """All signals of a recipe that a decision or projection uses."""

    async def observe(self, view: RequestView, deadline: Deadline) -> Observations: ...


class CompiledProjections(Protocol):
    def apply(self, observations: Observations) -> Mapping[str, float]:
        """Add the projections' observations (and drop losers of partitions); return the scores by name."""
        ...


class DecisionEngine(Protocol):
    def decide(self, observations: Observations) -> DecisionResult: ...


class Selector(Protocol):
    async def select(self, context: RequestContext) -> Selection:
        """Never raises for a model that cannot be asked: that is a fallback with its reason."""
        ...

    def deployments(self) -> frozenset[str]:
        """The model runtimes that it asks."""
        ...


class Upstreams(Protocol):
    """The backends of all provider models."""

    async def send(self, context: RequestContext) -> Reply:
        """Ask the models of `context.selection.order` with `context.body`, within the policies of retry and fallback. Raises UpstreamError."""
        ...

    async def count_tokens(self, context: RequestContext) -> int | None:
        """The prompt tokens of `context.body` as the selected model counts them; None where no backend of it can."""
        ...

    def start(self) -> None:
        """Begin what runs beside requests (health checks), on the running event loop. Until `close`."""
        ...

    async def close(self) -> None: ...


class Names(Protocol):
    """What model names mean on the public address."""

    def resolve(self, model: str) -> ResolvedName:
        """Raises RequestError `model_required`, or `model_not_available` (400, unlike an engine's `model_not_found`)."""
        ...

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The entries of `/v1/models`."""
        ...


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """A recipe to route with, or a provider's model (or LoRA) to pass the request through to."""

    recipe: str | None = None
    model: str | None = None
    lora: str | None = None


@dataclass(frozen=True, slots=True)
class CompiledRecipe:
    """One recipe, ready to run. `selectors` and `plugins` are by decision name; `default_model` answers when no decision matches."""

    recipe: Recipe
    extraction: Extraction
    projections: CompiledProjections
    decisions: DecisionEngine
    selectors: Mapping[str, Selector]
    plugins: Mapping[str, Sequence[Plugin]]
    default_model: str | None

    @property
    def name(self) -> str:
        return self.recipe.name


@dataclass(frozen=True, slots=True)
class Generation:
    """`number` counts from 1 in this process, `version` in the history of configurations; `config_hash` is of the normalised document.
    `resting` are provider models that take no requests: nothing selects them."""

    number: int
    document: Document
    config_hash: str
    names: Names
    recipes: Mapping[str, CompiledRecipe]
    upstreams: Upstreams
    deployments: RuntimeDeployments
    services: Services
    front: Front = field(default_factory=Front)
    version: int = 1
    resting: frozenset[str] = frozenset()
