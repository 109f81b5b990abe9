"""Observation: what one rule of one signal found out about one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headway.router.truth import Truth

UNSCANNED = "unscanned"
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Observation:
    """`kind` is the type that conditions name (`keyword`, `systemone`, ...), `name` the rule's.

    `confidence` is None for a rule that only says yes or no: it never takes part in ranking by confidence. `value` is the raw number that
    projections and predicates read (density, similarity, expected level, P(yes)). `labels` holds one number for each label of rules that have
    labels (a choice's P(key), a classifier's scores), `matched_labels` the labels that hold. `reason` is a bounded code: why it is UNKNOWN, or why
    content that was not read counts as a match (`unscanned_input_limit`, ...). `evidence` is for traces only and bounded: matched keywords with
    their spans, the best candidate.
    """

    kind: str
    name: str
    truth: Truth
    confidence: float | None = None
    value: float | None = None
    labels: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    matched_labels: tuple[str, ...] = ()
    reason: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`type:name`, as traces and `signal_errors` write it."""
        return f"{self.kind}:{self.name}"

    @property
    def is_unscanned(self) -> bool:
        """Whether it counts as it does because content was not read."""
        return self.reason is not None and self.reason.startswith(f"{UNSCANNED}_")


class Observations:
    """All observations of one request, by kind and name. Projections add theirs. `seconds` has (kind, time that its rules took), an entry for each
    signal that was asked."""

    def __init__(self, found: Iterable[Observation] = ()) -> None:
        self._by_key: dict[tuple[str, str], Observation] = {}
        self.seconds: list[tuple[str, float]] = []
        self.add(found)

    def add(self, found: Iterable[Observation]) -> None:
        for observation in found:
            self._by_key[observation.kind, observation.name] = observation

    def get(self, kind: str, name: str) -> Observation | None:
        """None when the rule was not evaluated, or has nothing to say: that counts as FALSE."""
        return self._by_key.get((kind, name))

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)
