"""Answers that cannot be true are no answers, whatever the form of the question."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.deployments.calls import Answered, Unanswered
from headway.router.deployments.card import cards_of
from headway.router.deployments.questions import Asked, QuestionBody, option_keys
from headway.wire.strict_json import dumps
from tests.router.deployments.fake_runtime import noul_card

CARD = cards_of(dumps({"api_version": "2.2.0", "data": [noul_card(question_types=["choice", "noul", "score", "set", "span"])]}))["judge"]
CHOICE = {"type": "choice", "instructions": "?", "choices": [{"key": "a"}, {"key": "b"}]}
NOUL = {"type": "noul", "instructions": "?"}
SCORE = {"type": "score", "instructions": "?", "criteria": ["low", "mid", "high"]}
SET = {"type": "set", "instructions": "?", "criteria": {"x": None, "y": "why"}}
SPAN = {"type": "span", "instructions": "?", "labels": [{"key": "NAME"}]}


def read(question: dict[str, Any], answer: dict[str, Any], state: Any = "some text", **part: Any) -> Any:
    return QuestionBody([Asked(question, state)], CARD).answers({"answers": {"q0": answer}, **part}, 0.0)[0]


@pytest.mark.parametrize(
    ("question", "answer", "more"),
    [
        (CHOICE, {"type": "choice", "choice": "a", "probabilities": {"a": 0.7, "b": 0.3}}, {}),
        (CHOICE, {"type": "choice", "choice": "a", "probabilities": {"a": 0.69, "b": 0.3}}, {}),  # rounded
        (NOUL, {"type": "noul", "noul": 1}, {}),
        (SCORE, {"type": "score", "score": 2.0, "probabilities": {"0": 0.0, "1": 0.0, "2": 1.0}}, {}),
        (SET, {}, {"sets": {"q0": {"selected": [], "probabilities": {"x": 0.1, "y": 0.9}}}}),
        (SPAN, {"type": "noul", "noul": 0.9}, {"spans": {"q0": [{"label": "NAME", "start": 0, "end": 9, "probability": 0.9, "text": "some text"}]}}),
        (SPAN, {"type": "noul", "noul": 0.1}, {"spans": {"q0": []}}),
    ],
)
def test_possible_answers(question: dict[str, Any], answer: dict[str, Any], more: dict[str, Any]) -> None:
    assert isinstance(read(question, answer, **more), Answered)


@pytest.mark.parametrize(
    ("question", "answer", "more"),
    [
        (CHOICE, {"choice": "c", "probabilities": {"a": 0.7, "b": 0.3}}, {}),
        (CHOICE, {"choice": "a", "probabilities": {"a": 1.0}}, {}),
        (CHOICE, {"choice": "a", "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2}}, {}),
        (CHOICE, {"choice": "a", "probabilities": {"a": 0.7, "b": 0.4}}, {}),
        (CHOICE, {"choice": "a", "probabilities": {"a": 1.5, "b": -0.5}}, {}),
        (CHOICE, {"choice": "a", "probabilities": {"a": True, "b": False}}, {}),
        (CHOICE, {"choice": "a"}, {}),
        (NOUL, {"noul": 1.01}, {}),
        (NOUL, {"noul": "0.5"}, {}),
        (NOUL, {}, {}),
        (SCORE, {"score": 2.1, "probabilities": {"0": 0.0, "1": 0.0, "2": 1.0}}, {}),
        (SCORE, {"score": -0.1, "probabilities": {"0": 1.0, "1": 0.0, "2": 0.0}}, {}),
        (SCORE, {"score": 1, "probabilities": {"0": 0.5, "1": 0.5}}, {}),
        (SET, {}, {"sets": {"q0": {"selected": ["z"], "probabilities": {"x": 0.1, "y": 0.9}}}}),
        (SET, {}, {"sets": {"q0": {"selected": ["x", "x"], "probabilities": {"x": 0.9, "y": 0.9}}}}),
        (SET, {}, {"sets": {"q0": {"selected": [], "probabilities": {"x": 0.1}}}}),
        (SET, {}, {"sets": {"q0": {"probabilities": {"x": 0.1, "y": 0.9}}}}),
        (SPAN, {"noul": 0.9}, {"spans": {"q0": [{"label": "NAME", "start": 0, "end": 10, "probability": 0.9}]}}),
        (SPAN, {"noul": 0.9}, {"spans": {"q0": [{"label": "NAME", "start": 3, "end": 3, "probability": 0.9}]}}),
        (SPAN, {"noul": 0.9}, {"spans": {"q0": [{"label": "CITY", "start": 0, "end": 3, "probability": 0.9}]}}),
        (SPAN, {"noul": 0.9}, {"spans": {"q0": [{"label": "NAME", "start": 0, "end": 3, "probability": 2}]}}),
        (SPAN, {"noul": 0.9}, {"spans": {"q0": None}}),
    ],
)
def test_impossible_answers(question: dict[str, Any], answer: dict[str, Any], more: dict[str, Any]) -> None:
    assert read(question, answer, **more) == Unanswered("invalid_model_output")


def test_a_state_that_failed_as_a_whole() -> None:
    body = QuestionBody([Asked(NOUL, "a"), Asked(NOUL, "b")], CARD)
    answers = body.answers({"states": {"s0": {"answers": {"q0": {"noul": 0.1}}}, "s1": {"error": {"code": "max_length_exceeded"}}}}, 0.0)
    assert isinstance(answers[0], Answered)
    assert answers[1] == Unanswered("input_limit")
    assert body.answers({"states": [1]}, 0.0) == [Unanswered("missing_answer")] * 2


def test_a_set_of_nouls_needs_them_all() -> None:
    card = cards_of(dumps({"data": [noul_card(question_types=["noul"])]}))["judge"]
    body = QuestionBody([Asked(SET, "a")], card)
    assert body.answers({"answers": {"q0n0": {"noul": 0.9}}}, 0.0) == [Unanswered("incomplete_label_judgments")]
    assert body.answers({"answers": {"q0n0": {"noul": 0.9}, "q0n1": {"error": "scan_budget_exceeded"}}}, 0.0) == [Unanswered("scan_budget")]
    [found] = body.answers({"answers": {"q0n0": {"noul": 0.9}, "q0n1": {"noul": 0.2}}}, 0.0)
    assert isinstance(found, Answered)
    assert found.value == {"type": "set", "probabilities": {"x": 0.9, "y": 0.2}, "selected": ["x"]}
    [strict] = QuestionBody([Asked({**SET, "threshold": 0.95}, "a")], card).answers({"answers": {"q0n0": {"noul": 0.9}, "q0n1": {"noul": 0.2}}}, 0.0)
    assert isinstance(strict, Answered)
    assert strict.value["selected"] == []


def test_keys_of_options() -> None:
    assert [option_keys(question) for question in (CHOICE, NOUL, SCORE, SET, SPAN)] == [("a", "b"), (), ("0", "1", "2"), ("x", "y"), ("NAME",)]
