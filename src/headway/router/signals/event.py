"""The event signal: types, severities and codes of machine-made events in the latest user turn."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import EventRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.boundaries import joins_identifiers
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.word_index import WordIndex
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "event"
_TEMPORAL = (
    "urgent",
    "immediate",
    "asap",
    "deadline",
    "time-sensitive",
    "now",
    *(f"critical{between}window" for between in " .-_:/"),
)


class EventCriteria:
    """All rules, their words found in one pass. A rule holds when one of its criteria does; confidence 0.5 + 0.5 * met / asked."""

    def __init__(self, rules: Sequence[EventRule]) -> None:
        words: list[str] = []
        self._rules: list[tuple[str, dict[str, range]]] = []
        for rule in rules:
            criteria: dict[str, range] = {}
            for name, wanted in (
                ("event_types", rule.event_types),
                ("severities", rule.severities),
                ("action_codes", rule.action_codes),
                ("temporal", _TEMPORAL if rule.temporal else ()),
            ):
                if wanted:
                    criteria[name] = range(len(words), len(words) + len(wanted))
                    words.extend(wanted)
            self._rules.append((rule.name, criteria))
        self._words = words
        self._index = WordIndex(words, joins=joins_identifiers)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        found = self._index.first(fold(view.user_text))
        return [self._judged(name, criteria, found) for name, criteria in self._rules]

    def _judged(self, name: str, criteria: dict[str, range], found: dict[int, tuple[int, int]]) -> Observation:
        met = {
            criterion: self._words[number] for criterion, numbers in criteria.items() if (number := next((n for n in numbers if n in found), None)) is not None
        }
        if not met:
            return Observation(TYPE, name, Truth.FALSE, value=0.0)
        return Observation(TYPE, name, Truth.TRUE, 0.5 + 0.5 * len(met) / len(criteria), float(len(met)), evidence={"criteria": met})


def _compile(rules: Sequence[EventRule], recipe: Recipe) -> Sequence[EventCriteria]:
    return (EventCriteria(rules),)


EVENT = SignalKind(TYPE, "events", "event", _compile)
