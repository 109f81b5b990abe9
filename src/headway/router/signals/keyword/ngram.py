"""N-gram keywords: words and phrases that share enough character n-grams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headway.router.config.document.text_signals import KeywordRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.result import Verdict, searched_text
from headway.router.signals.keyword.units import different_phrases, text_units

_MOST_PHRASES = 4_000  # different phrases of a text that are compared


class NgramKeywords:
    """One rule. The similarity of a keyword and a phrase of as many units is shared / all of their n-grams (as multisets; ends are padded), that of
    a text the best of its phrases. A keyword is found from `ngram_threshold` on."""

    def __init__(self, rule: KeywordRule) -> None:
        self._rule = rule
        self._verdict = Verdict(rule)
        self._words = self._verdict.words
        self._grams: list[Counter[str]] = []
        self._lengths: list[int] = []
        self._holders: dict[int, dict[str, list[int]]] = {}  # length in units -> n-gram -> numbers of keywords that have it
        for number, word in enumerate(self._words):
            units = text_units(fold(word, rule.case_sensitive)) or [word]
            grams = ngrams(" ".join(units), rule.ngram_arity)
            self._grams.append(grams)
            holders = self._holders.setdefault(len(units), {})
            for gram in grams:
                holders.setdefault(gram, []).append(number)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        rule = self._rule
        units = text_units(fold(searched_text(view, rule.include_history), rule.case_sensitive))
        best: dict[int, tuple[float, str]] = {}
        for length, holders in self._holders.items():
            for phrase in different_phrases(units, length, _MOST_PHRASES):
                grams = ngrams(phrase, rule.ngram_arity)
                for number in {number for gram in grams for number in holders.get(gram, ())}:
                    similarity = _similarity(grams, self._grams[number])
                    if similarity >= rule.ngram_threshold and similarity > best.get(number, (0.0, ""))[0]:
                        best[number] = (similarity, phrase)
        found = [(self._words[number], *best[number]) for number in sorted(best)]
        return (self._verdict.of(len(found), [{"keyword": word, "similarity": round(share, 4), "found": phrase} for word, share, phrase in found]),)


def ngrams(text: str, arity: int) -> Counter[str]:
    """The n-grams of `text` between `arity - 1` blanks on each side."""
    padded = " " * (arity - 1) + text + " " * (arity - 1)
    return Counter(padded[at : at + arity] for at in range(len(padded) - arity + 1))


def _similarity(one: Counter[str], other: Counter[str]) -> float:
    shared = (one & other).total()
    return shared / (one.total() + other.total() - shared)
