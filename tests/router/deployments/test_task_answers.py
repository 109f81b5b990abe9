"""Answers of heads, vectors and rerankers, item by item."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.deployments.calls import Answered, Distribution, FoundSpan, Unanswered
from headway.router.deployments.task_answers import all_vectors, distributions, found_spans, relevances, vectors

INVALID = Unanswered("invalid_model_output")
META = {"representation": {"model_sha256": "a", "layer": 1, "dimension": 2}}


def one(result: dict[str, Any], labels: Any = ("x", "y")) -> Any:
    return distributions({"labels": list(labels) if isinstance(labels, tuple) else labels, "results": [{"index": 0, **result}]}, ["text"], 0.0)[0]


def test_windows_may_make_more_than_one_label_likely() -> None:
    likely = {"probabilities": [0.9, 0.8]}
    assert one(likely) == INVALID
    assert one({**likely, "windows": [{"start": 0, "end": 9}]}) == Answered(Distribution({"x": 0.9, "y": 0.8}))
    assert one({"scores": [0.9, 0.8]}) == Answered(Distribution({"x": 0.9, "y": 0.8}))
    assert one({"scores": [0.9, 1.8]}) == INVALID


@pytest.mark.parametrize("labels", [None, "xy", ["x", 1], ["x"]])
def test_labels_that_do_not_fit(labels: Any) -> None:
    assert one({"probabilities": [0.5, 0.5]}, labels) == INVALID


@pytest.mark.parametrize("results", [None, {}, [], [{"index": 1}], [3]])
def test_items_that_are_not_there(results: Any) -> None:
    assert distributions({"labels": ["x"], "results": results}, ["text"], 0.0) == [Unanswered("missing_answer")]


def test_errors_of_items() -> None:
    body = {"labels": ["x"], "results": [{"index": 1, "error": {"code": "scan_budget_exceeded"}}, {"index": 0, "error": "deadline_exceeded"}]}
    assert distributions(body, ["a", "b"], 0.0) == [Unanswered("deadline"), Unanswered("scan_budget")]


def test_spans_lie_inside_of_what_was_read() -> None:
    def read(given: Any, start: int, end: int) -> Any:
        return found_spans({"results": [{"index": 0, "spans": [{"label": "N", "start": start, "end": end, "probability": 1}]}]}, [given], 0.0)[0]

    assert read("abc", 0, 3) == Answered([FoundSpan("N", 0, 3, 1)])
    assert read("abc", 0, 4) == INVALID
    assert read("abc", 2, 2) == INVALID
    assert read({"context": "long context", "answer": "abc"}, 0, 4) == INVALID
    assert read({"context": "", "answer": "abc"}, 1, 2) == Answered([FoundSpan("N", 1, 2, 1)])


def test_vectors_of_two_models_never_mix() -> None:
    first = vectors({"data": [{"index": 0, "embedding": [1.0, 0.0]}], "meta": META}, ["a"], 0.0)
    other = {"representation": {**META["representation"], "model_sha256": "b"}}
    second = vectors({"data": [{"index": 0, "embedding": [1.0, 0.0]}], "meta": other}, ["b"], 0.0)
    assert all_vectors(first) == Answered([[1.0, 0.0]], representation="a/layer-1/2")
    assert all_vectors([*first, *second]) == INVALID


@pytest.mark.parametrize("embedding", [None, [], "?", "AAA=", [[1.0]], ["a"], [float("nan")], {}])
def test_what_is_no_vector(embedding: Any) -> None:
    assert vectors({"data": [{"index": 0, "embedding": embedding}], "meta": META}, ["a"], 0.0) == [INVALID]


def test_vectors_without_an_identity_are_no_answer() -> None:
    assert vectors({"data": [{"index": 0, "embedding": [1.0]}]}, ["a"], 0.0) == [INVALID]


def test_relevance_is_a_share() -> None:
    body = {"results": [{"index": 1, "relevance_score": 0.25}, {"index": 0, "relevance_score": 7}]}
    assert relevances(body, ["a", "b"], 0.0) == [INVALID, Answered(0.25)]
