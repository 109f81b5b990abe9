"""SignalKind: one kind of signal, from its rules in the configuration to code that observes requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.deployments.calls import StageCalls
from headway.router.observation import Observation
from headway.router.request.view import RequestView


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where rules come from: the whole document, and the routing whose signals they are."""

    document: Document
    routing: RecipeRouting
    name: str = "default"


class TextSignal(Protocol):
    """Observes without waiting for anything: microseconds on the event loop."""

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
    `names` are what conditions may name for one rule (`rule`, or `rule:hard` for complexity). `header` is the debug header that lists matches.
    """

    type: str
    collection: str
    observation_key: str
    compile: Callable[[Sequence[Any], Recipe], Sequence[TextSignal | ModelSignal]]
    names: Callable[[Any], tuple[str, ...]] = lambda rule: (rule.name,)
    in_conditions: bool = True

    @property
    def header(self) -> str:
        return f"x-vsr-matched-{self.observation_key.replace('_', '-')}"
