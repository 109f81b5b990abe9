"""The keyword signal: rules of words that must, or must not, stand in what the user writes."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import KeywordRule
from headway.router.signals.keyword.exact import ExactKeywords
from headway.router.signals.keyword.result import TYPE
from headway.router.signals.kind import Recipe, SignalKind, TextSignal


def _compile(rules: Sequence[KeywordRule], recipe: Recipe) -> Sequence[TextSignal]:
    """Exact rules of the same case sensitivity and scope share one pass over the text; the libraries of other methods load when a rule needs them."""
    signals: list[TextSignal] = []
    exact: dict[tuple[bool, bool], list[KeywordRule]] = {}
    for rule in rules:
        if rule.method == "bm25":
            from headway.router.signals.keyword.bm25 import Bm25Keywords

            signals.append(Bm25Keywords(rule))
        elif rule.method == "ngram":
            from headway.router.signals.keyword.ngram import NgramKeywords

            signals.append(NgramKeywords(rule))
        elif rule.fuzzy_match and rule.fuzzy_threshold:
            from headway.router.signals.keyword.fuzzy import FuzzyKeywords

            signals.append(FuzzyKeywords(rule))
        else:
            exact.setdefault((rule.case_sensitive, rule.include_history), []).append(rule)
    signals.extend(ExactKeywords(group, *way) for way, group in exact.items())
    return signals


KEYWORD = SignalKind(TYPE, "keywords", "keywords", _compile)
