"""What a keyword rule says once it is known which of its keywords the text has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.router.config.document.text_signals import KeywordRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.truth import Truth

TYPE = "keyword"
SHOWN = 8
"""Matched keywords in the evidence of one rule."""

_HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    "AND": lambda matched, total: matched == total,
    "OR": lambda matched, total: matched > 0,
    "NOR": lambda matched, total: matched == 0,
}


class Verdict:
    """A rule with its different keywords in order. Confidence of a rule that holds: 0.5 + 0.5 * matched / all."""

    def __init__(self, rule: KeywordRule) -> None:
        self.words = list(dict.fromkeys(rule.keywords))
        self._name = rule.name
        self._holds = _HOLDS[rule.operator]
        self.nothing = self.of(0)

    def of(self, matched: int, shown: Sequence[Mapping[str, Any]] = ()) -> Observation:
        """After `matched` of the keywords were found."""
        total = len(self.words)
        holds = self._holds(matched, total)
        confidence = 0.5 + 0.5 * matched / total if holds else None
        return Observation(TYPE, self._name, Truth.of(holds), confidence, float(matched), evidence={"keywords": list(shown[:SHOWN])} if shown else {})


def searched_text(view: RequestView, history: bool) -> str:
    """The latest user turn, or all user turns, oldest first, joined by line ends. Spans of evidence count in it."""
    return "\n".join(view.user_texts) if history else view.user_text
