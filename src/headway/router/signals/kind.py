"""SignalKind: one kind of signal, from its rules in the configuration to code that observes requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headway.router.config.document.document import Document
from headway.router.config.document.model_catalog import ModelCatalog
from headway.router.config.document.modules import ModelModules
from headway.router.config.document.routing import RecipeRouting
from headway.router.deployments.calls import StageCalls
from headway.router.embedding.memo import VectorMemo
from headway.router.observation import Observation
from headway.router.request.view import RequestView


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where rules come from: the whole document, and the routing whose signals they are. `vectors` outlives the generation: see Services."""

    document: Document
    routing: RecipeRouting
    name: str = "default"
    vectors: VectorMemo = field(default_factory=VectorMemo)

    @property
    def catalog(self) -> ModelCatalog:
        """`global.model_catalog`; an empty one when the document has none."""
        settings = self.document.global_
        return (settings.model_catalog if settings else None) or ModelCatalog()

    @property
    def modules(self) -> ModelModules:
        """`global.model_catalog.modules`; empty ones when there are none."""
        return self.catalog.modules or ModelModules()


class TextSignal(Protocol):
    """Observes without waiting for anything: microseconds on the event loop. Long texts come in any thread, several at a time."""

    def observe(self, view: RequestView) -> Sequence[Observation]: ...


class ModelSignal(Protocol):
    """Observes by asking models. It never raises for a model that does not answer: that is an UNKNOWN observation with its reason."""

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]: ...

    def deployments(self) -> frozenset[str]:
        """The deployments that it asks."""
        ...


@dataclass(frozen=True, slots=True)
class SignalKind:
    """`type` is the word in conditions, `collection` the list under `routing.signals`, `observation_key` the word in previews.

    `compile` gets the rules of the collection that something uses, all together, and returns what observes them; it raises ConfigError.
    `names` are what conditions may name for one rule (`rule`, or `rule:hard` for complexity), `labels` the labels that conditions may name for it
    (None: conditions have no label). `header` is the debug header that lists matches. `scale` says what an observation's confidence measures
    (`probability`, `similarity`): decisions are ranked by confidences of one scale only; None is a gate, which ranks nothing. `unanswered` is what
    a rule counts as when its signal did not end in time or failed; the default is UNKNOWN with the reason. `measures` is a type of numbers that
    scores may read without any rule: then `compile` gets no rules.
    """

    type: str
    collection: str
    observation_key: str
    compile: Callable[[Sequence[Any], Recipe], Sequence[TextSignal | ModelSignal]]
    names: Callable[[Any], tuple[str, ...]] = lambda rule: (rule.name,)
    labels: Callable[[Any], tuple[str, ...] | None] = lambda rule: None
    in_conditions: bool = True
    scale: str | None = None
    unanswered: Callable[[Any, str], Sequence[Observation]] | None = None
    measures: str | None = None

    @property
    def header(self) -> str:
        return f"x-vsr-matched-{self.observation_key.replace('_', '-')}"
