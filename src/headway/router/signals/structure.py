"""The structure signal: counts, densities and orders of marks in the latest user turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import re2

from headway.router.config.document.text_signals import StructureFeature, StructureRule, StructureSource
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.units import text_units
from headway.router.signals.keyword.word_index import WordIndex
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "structure"
_MOST = 10_000  # occurrences that are counted in one text

Measure: TypeAlias = Callable[[str], int]
"""A text -> how often it has what a source looks for."""


class TextStructure:
    """All rules; what several of them measure alike is measured once. The raw value is told also when the rule does not hold."""

    def __init__(self, rules: Sequence[StructureRule]) -> None:
        measures: dict[str, int] = {}
        self._measures: list[Measure] = []
        self._rules: list[tuple[StructureRule, int]] = []
        for rule in rules:
            source = rule.feature.source.model_dump_json()
            if source not in measures:
                measures[source] = len(self._measures)
                self._measures.append(_measure(rule.feature.source))
            self._rules.append((rule, measures[source]))
        self._needs_units = any(rule.feature.type == "density" for rule in rules)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        text = view.user_text
        counts = [measure(text) for measure in self._measures]
        units = len(text_units(text)) if self._needs_units else 0
        return [_observed(rule, _value(rule.feature, counts[at], units)) for rule, at in self._rules]


def _value(feature: StructureFeature, count: int, units: int) -> float:
    if feature.type == "exists":
        return float(count > 0)
    if feature.type == "density":
        return count / units if units else 0.0
    return float(count)


def _observed(rule: StructureRule, value: float) -> Observation:
    holds = rule.predicate.holds(value) if rule.predicate is not None else value > 0
    return Observation(TYPE, rule.name, Truth.of(holds), value=value)


def _measure(source: StructureSource) -> Measure:
    if source.type == "text_bytes":
        return lambda text: len(text.encode("utf-8", "surrogatepass"))
    if source.type == "regex":
        return _pattern_counter(source.pattern or "", source.case_sensitive)
    if source.type == "keyword_set":
        return _word_counter(source.keywords or (), source.case_sensitive)
    return _sequence_counter(source.sequences or (), source.case_sensitive)


def _pattern_counter(pattern: str, case_sensitive: bool) -> Measure:
    """Counts matches that do not overlap. On bytes: positions in text would cost a walk through it for each match."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = case_sensitive
    compiled = re2.compile(pattern.encode(), options)

    def count(text: str) -> int:
        found = 0
        for _ in compiled.finditer(text.encode("utf-8", "replace")):
            found += 1
            if found == _MOST:
                break
        return found

    return count


def _word_counter(words: Sequence[str], case_sensitive: bool) -> Measure:
    """Counts occurrences of words; of words that overlap, the one that begins first, and then the longest."""
    index = WordIndex(words, case_sensitive)

    def count(text: str) -> int:
        spans: list[tuple[int, int]] = []
        for _, start, end in index.occurrences(fold(text, case_sensitive)):
            spans.append((start, -end))
            if len(spans) == _MOST:
                break
        spans.sort()
        found, reached = 0, 0
        for start, minus_end in spans:
            if start >= reached:
                found, reached = found + 1, -minus_end
        return found

    return count


def _sequence_counter(sequences: Sequence[Sequence[str]], case_sensitive: bool) -> Measure:
    """Counts the sequences whose words stand in the text in their order, each behind the end of the one before."""
    words = list(dict.fromkeys(fold(word.strip(), case_sensitive) for sequence in sequences for word in sequence))
    numbers = {word: number for number, word in enumerate(words)}
    index = WordIndex(words, case_sensitive)
    wanted = [[numbers[fold(word.strip(), case_sensitive)] for word in sequence] for sequence in sequences]

    def count(text: str) -> int:
        reached = [0] * len(wanted)  # how many words of each sequence were found
        behind = [0] * len(wanted)
        for number, start, end in sorted(index.occurrences(fold(text, case_sensitive)), key=lambda found: found[2]):
            for at, sequence in enumerate(wanted):
                if reached[at] < len(sequence) and sequence[reached[at]] == number and start >= behind[at]:
                    reached[at], behind[at] = reached[at] + 1, end
        return sum(found == len(sequence) for found, sequence in zip(reached, wanted, strict=True))

    return count


def _compile(rules: Sequence[StructureRule], recipe: Recipe) -> Sequence[TextStructure]:
    return (TextStructure(rules),)


STRUCTURE = SignalKind(TYPE, "structure", "structure", _compile)
