"""BM25 keywords: each keyword of a rule is a document, the text is the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.router.config.document.text_signals import KeywordRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.result import Verdict, searched_text
from headway.router.signals.keyword.units import text_units


class Bm25Keywords:
    """One rule. A keyword is found when its score (Lucene's BM25, k1 1.5, b 0.75) reaches `bm25_threshold` and is above 0: words that many
    keywords share weigh little, a phrase of which the text has one word scores less than the whole. A word counts once, however often it stands
    in the text."""

    def __init__(self, rule: KeywordRule) -> None:
        import bm25s  # brings scipy, which takes longer to import than most of the router

        self._rule = rule
        self._verdict = Verdict(rule)
        self._words = self._verdict.words
        documents = [text_units(fold(word, rule.case_sensitive)) or [word] for word in self._words]
        self._known = {unit for document in documents for unit in document}
        self._ranking = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self._ranking.index(documents, show_progress=False)

    def observe(self, view: RequestView) -> Sequence[Observation]:
        rule = self._rule
        units = dict.fromkeys(text_units(fold(searched_text(view, rule.include_history), rule.case_sensitive)))
        query = [unit for unit in units if unit in self._known]
        if not query:
            return (self._verdict.nothing,)
        scores = np.asarray(self._ranking.get_scores(query))
        matched = [(word, float(score)) for word, score in zip(self._words, scores, strict=True) if score > 0 and score >= rule.bm25_threshold]
        return (self._verdict.of(len(matched), [{"keyword": word, "score": round(score, 4)} for word, score in matched]),)
