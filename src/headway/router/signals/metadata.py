"""The metadata signal: what the caller says about a request. Never proof of anything."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import MetadataPredicate, MetadataRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "metadata"


class MetadataRules:
    """All rules."""

    def __init__(self, rules: Sequence[MetadataRule]) -> None:
        self._rules = rules

    def observe(self, view: RequestView) -> Sequence[Observation]:
        metadata = view.metadata
        return [Observation(TYPE, rule.name, Truth.of(_holds(rule.predicate, metadata.get(rule.key)))) for rule in self._rules]


def _holds(predicate: MetadataPredicate, value: str | None) -> bool:
    if predicate.exists is not None:
        return (value is not None) == predicate.exists
    if predicate.in_ is not None:
        return value in predicate.in_
    return value == predicate.equals


def _compile(rules: Sequence[MetadataRule], recipe: Recipe) -> Sequence[MetadataRules]:
    return (MetadataRules(rules),)


METADATA = SignalKind(TYPE, "metadata", "metadata", _compile)
