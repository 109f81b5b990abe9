"""Operators, confidences, history, and how much is done."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from headway.router.config.document.text_signals import KeywordRule
from headway.router.request.view import RequestView
from headway.router.signals.keyword.exact import ExactKeywords
from headway.router.signals.keyword.folding import fold
from headway.router.signals.keyword.word_index import WordIndex
from headway.router.truth import Truth
from tests.router.routed import route, signals_of


def test_and_or_nor_over_every_subset() -> None:
    words = ["alpha", "beta", "gamma", "delta"]
    rules = [{"name": operator, "operator": operator, "keywords": words} for operator in ("AND", "OR", "NOR")]
    built = signals_of("keywords", "keyword", rules)
    for count in range(5):
        for present in itertools.combinations(words, count):
            seen = route(built, " ".join(present))
            wanted = {"AND": count == 4, "OR": count > 0, "NOR": count == 0}
            for operator, holds in wanted.items():
                found = seen[f"keyword:{operator}"]
                assert found.truth is Truth.of(holds)
                assert found.confidence == (0.5 + 0.5 * count / 4 if holds else None)
                assert found.value == count


@pytest.mark.parametrize(("matched", "confidence"), [(1, 0.625), (2, 0.75), (3, 0.875), (4, 1.0)])
def test_confidence_grows_with_what_is_found(matched: int, confidence: float) -> None:
    words = ["one", "two", "three", "four"]
    seen = route(signals_of("keywords", "keyword", [{"name": "k", "operator": "or", "keywords": words}]), " ".join(words[:matched]))
    assert seen["keyword:k"].confidence == confidence


def test_a_repeated_keyword_counts_once() -> None:
    seen = route(signals_of("keywords", "keyword", [{"name": "k", "operator": "AND", "keywords": ["one", "one"]}]), "one")
    assert seen["keyword:k"].confidence == 1.0


def test_history_is_earlier_user_turns_only() -> None:
    rules = [{"name": name, "operator": "OR", "keywords": ["refund"], "include_history": name == "all"} for name in ("all", "latest")]
    turns = [("user", "a refund please"), ("assistant", "sure"), ("user", "thanks")]
    seen = route(signals_of("keywords", "keyword", rules), {"messages": [{"role": role, "content": text} for role, text in turns]})
    assert (seen["keyword:all"].truth, seen["keyword:latest"].truth) == (Truth.TRUE, Truth.FALSE)
    said = route(signals_of("keywords", "keyword", rules), {"messages": [{"role": "assistant", "content": "refund"}, {"role": "user", "content": "no"}]})
    assert said["keyword:all"].truth is Truth.FALSE


def test_many_rules_read_the_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    search = WordIndex.first

    def counted(index: WordIndex, folded: str) -> Any:
        passes.append(len(folded))
        return search(index, folded)

    monkeypatch.setattr(WordIndex, "first", counted)
    rules = [{"name": f"k{at}", "operator": "OR", "keywords": [f"word{at}", "shared"]} for at in range(40)]
    seen = route(signals_of("keywords", "keyword", rules), "shared word7")
    assert passes == [12]
    assert all(seen[f"keyword:k{at}"].confidence == (1.0 if at == 7 else 0.75) for at in range(40))


def test_evidence_is_bounded() -> None:
    words = [f"w{at}" for at in range(100)]
    seen = route(signals_of("keywords", "keyword", [{"name": "k", "operator": "OR", "keywords": words}]), " ".join(words))
    assert seen["keyword:k"].value == 100
    assert len(seen["keyword:k"].evidence["keywords"]) == 8


def test_a_rule_that_finds_nothing_makes_nothing() -> None:
    group = ExactKeywords([KeywordRule(name="k", operator="OR", keywords=["word"])], False, False)
    empty = RequestView({"messages": [{"role": "user", "content": "nothing"}]})
    assert group.observe(empty)[0] is group.observe(empty)[0]


@pytest.mark.parametrize("gap", [65_530, 65_536, 65_540, 200_000])
def test_long_texts_are_searched_in_pieces_without_a_seam(gap: int) -> None:
    index = WordIndex(["needle in hay", "edge"])
    for text in ("x " * (gap // 2) + "needle in hay", "-" * gap + "edge", "-" * (gap - 2) + "edge"):
        (span,) = set(index.first(fold(text)).values())
        assert text[slice(*span)] in ("needle in hay", "edge")
        assert [text[start:end] for _, start, end in index.occurrences(fold(text))] == [text[slice(*span)]]
    assert not index.first("y" * gap + "edge")


def test_a_text_that_matches_everywhere_costs_one_piece_at_a_time() -> None:
    """Every character of the text is a match of every keyword: it ends after the first of each."""
    index = WordIndex(["发", "发发", "发发发"])
    taken = 0
    matches = index._matches

    def counted(folded: str) -> Any:
        nonlocal taken
        for found in matches(folded):
            taken += 1
            yield found

    index._matches = counted  # type: ignore[method-assign]
    assert len(index.first("发" * 1_000_000)) == 3
    assert taken <= 8
