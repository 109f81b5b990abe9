"""Fuzzy keywords: also words within a few edits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from headway.router.config.document.text_signals import KeywordRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.result import Verdict, searched_text
from headway.router.signals.keyword.units import different_phrases, text_units
from headway.router.signals.keyword.word_index import WordIndex

_MOST_PHRASES = 20_000  # different phrases of a text that are compared with each keyword


class FuzzyKeywords:
    """One rule. A keyword is found as it is, or as a phrase of as many units within `fuzzy_threshold` edits (Levenshtein), of which there are at
    most a third as many as the keyword has characters: two edits turn `cat` into anything."""

    def __init__(self, rule: KeywordRule) -> None:
        self._rule = rule
        self._verdict = Verdict(rule)
        self._words = self._verdict.words
        self._index = WordIndex(self._words, rule.case_sensitive)
        self._targets = [" ".join(text_units(fold(word, rule.case_sensitive))) for word in self._words]

    def observe(self, view: RequestView) -> Sequence[Observation]:
        rule = self._rule
        folded = fold(searched_text(view, rule.include_history), rule.case_sensitive)
        exact = self._index.first(folded)
        phrases: dict[int, list[str]] = {}
        shown: list[dict[str, Any]] = []
        units = text_units(folded)
        for number, (word, target) in enumerate(zip(self._words, self._targets, strict=True)):
            if number in exact:
                shown.append({"keyword": word, "edits": 0})
                continue
            edits = min(rule.fuzzy_threshold, len(target) // 3)
            length = target.count(" ") + 1
            if not edits:
                continue
            if length not in phrases:
                phrases[length] = different_phrases(units, length, _MOST_PHRASES)
            found = process.extractOne(target, phrases[length], scorer=Levenshtein.distance, score_cutoff=edits)
            if found is not None:
                shown.append({"keyword": word, "edits": int(found[1]), "found": found[0]})
        return (self._verdict.of(len(shown), shown),)
