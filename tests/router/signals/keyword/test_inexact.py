"""Fuzzy, BM25 and n-gram keywords, each against a version of its formula written down here."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.document.text_signals import KeywordRule
from headway.router.request.view import RequestView
from headway.router.signals.keyword.bm25 import Bm25Keywords
from headway.router.signals.keyword.fuzzy import FuzzyKeywords
from headway.router.signals.keyword.ngram import NgramKeywords
from headway.router.truth import Truth
from tests.router.routed import route, signals_of


def view(text: str) -> RequestView:
    return RequestView({"messages": [{"role": "user", "content": text}]})


def rule(keywords: list[str], **more: Any) -> KeywordRule:
    return KeywordRule(name="k", operator="OR", keywords=keywords, **more)


def shown(found: Any) -> dict[str, Any]:
    return {each["keyword"]: each for each in found.evidence.get("keywords", ())}


def edits(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        last, row[0] = row[0], at
        for index, right in enumerate(other, 1):
            last, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, last + (left != right))
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abcd", min_size=1, max_size=8), min_size=1, max_size=4, unique=True), st.lists(st.text("abcd", min_size=1, max_size=9), max_size=6), st.integers(1, 3))
def test_fuzzy_finds_words_within_their_edits(keywords: list[str], words: list[str], most: int) -> None:
    (found,) = FuzzyKeywords(rule(keywords, fuzzy_match=True, fuzzy_threshold=most)).observe(view(" ".join(words)))
    wanted = {keyword for keyword in keywords if any(edits(keyword, word) <= min(most, len(keyword) // 3) for word in words)}
    assert set(shown(found)) == wanted
    assert found.truth is Truth.of(bool(wanted))


def test_fuzzy_phrases_and_short_words() -> None:
    fuzzy = FuzzyKeywords(rule(["password reset", "cat", "発票"], fuzzy_match=True))
    assert not shown(fuzzy.observe(view("I need a pasword reste"))[0])  # three edits
    assert set(shown(fuzzy.observe(view("Pasword reset now"))[0])) == {"password reset"}
    assert not shown(fuzzy.observe(view("dog"))[0])
    assert set(shown(fuzzy.observe(view("cut"))[0])) == {"cat"}
    assert set(shown(fuzzy.observe(view("開発票"))[0])) == {"発票"}


def bm25(documents: list[list[str]], query: set[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's: idf ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b length / mean length))."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            tf, holders = document.count(term), sum(term in other for other in documents)
            if tf:
                idf = math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3).map(" ".join), min_size=2, max_size=5, unique=True), st.lists(st.sampled_from("abcdefgh"), max_size=8))
def test_bm25_scores(keywords: list[str], words: list[str]) -> None:
    (found,) = Bm25Keywords(rule(keywords, method="bm25", bm25_threshold=0.2)).observe(view(" ".join(words)))
    wanted = {keyword: score for keyword, score in zip(keywords, bm25([keyword.split() for keyword in keywords], set(words)), strict=True) if score >= 0.2}
    assert {keyword: each["score"] for keyword, each in shown(found).items()} == {keyword: pytest.approx(score, abs=2e-4) for keyword, score in wanted.items()}


def similarity(one: str, other: str, arity: int) -> float:
    """Shared over all n-grams, as multisets, with the ends padded."""

    def grams(text: str) -> Counter[str]:
        padded = f"{' ' * (arity - 1)}{text}{' ' * (arity - 1)}"
        return Counter(padded[at : at + arity] for at in range(len(padded) - arity + 1))

    left, right = grams(one), grams(other)
    shared = sum(min(left[gram], right[gram]) for gram in left)
    return shared / (sum(left.values()) + sum(right.values()) - shared)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abcd", min_size=2, max_size=8), min_size=1, max_size=4, unique=True), st.lists(st.text("abcd", min_size=1, max_size=9), max_size=6), st.integers(1, 4))
def test_ngrams(keywords: list[str], words: list[str], arity: int) -> None:
    (found,) = NgramKeywords(rule(keywords, method="ngram", ngram_arity=arity)).observe(view(" ".join(words)))
    best = {keyword: max((similarity(keyword, word, arity) for word in words), default=0.0) for keyword in keywords}
    wanted = {keyword: pytest.approx(value, abs=1e-4) for keyword, value in best.items() if value >= 0.4}
    assert {keyword: each["similarity"] for keyword, each in shown(found).items()} == wanted


@pytest.mark.parametrize(("method", "text", "holds"), [("ngram", "this is urgnt", True), ("ngram", "a calm note", False), ("bm25", "urgent!", True), ("bm25", "urgnt", False)])
def test_methods_in_a_recipe(method: str, text: str, holds: bool) -> None:
    rules = [{"name": "k", "operator": "OR", "keywords": ["urgent", "immediate"], "method": method}]
    assert route(signals_of("keywords", "keyword", rules), text)["keyword:k"].truth is Truth.of(holds)


def test_nor_of_inexact_methods() -> None:
    for method in ("ngram", "bm25"):
        rules = [{"name": "k", "operator": "NOR", "keywords": ["urgent", "immediate"], "method": method}]
        assert route(signals_of("keywords", "keyword", rules), "")["keyword:k"].truth is Truth.TRUE
