"""Exact keywords: many rules, one pass over the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.router.config.document.text_signals import KeywordRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import fold, original_spans
from headway.router.signals.keyword.result import SHOWN, Verdict, searched_text
from headway.router.signals.keyword.word_index import WordIndex


class ExactKeywords:
    """All rules of one case sensitivity and one scope of text, found in one pass. A rule that finds nothing costs nothing."""

    def __init__(self, rules: Sequence[KeywordRule], case_sensitive: bool, history: bool) -> None:
        self._verdicts = [Verdict(rule) for rule in rules]
        self._case_sensitive = case_sensitive
        self._history = history
        self._words = [(at, word) for at, verdict in enumerate(self._verdicts) for word in verdict.words]
        self._index = WordIndex([word for _, word in self._words], case_sensitive)
        self._nothing = tuple(verdict.nothing for verdict in self._verdicts)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        text = searched_text(view, self._history)
        found = self._index.first(fold(text, self._case_sensitive))
        if not found:
            return self._nothing
        hits: dict[int, list[int]] = {}
        for number in sorted(found):
            hits.setdefault(self._words[number][0], []).append(number)
        shown = [number for numbers in hits.values() for number in numbers[:SHOWN]]
        spans = dict(zip(shown, original_spans(text, self._case_sensitive, [found[number] for number in shown]), strict=True))
        observations = list(self._nothing)
        for at, numbers in hits.items():
            evidence = [_shown(self._words[number][1], spans[number]) for number in numbers[:SHOWN]]
            observations[at] = self._verdicts[at].of(len(numbers), evidence)
        return observations


def _shown(word: str, span: tuple[int, int] | None) -> dict[str, Any]:
    return {"keyword": word} if span is None else {"keyword": word, "start": span[0], "end": span[1]}
