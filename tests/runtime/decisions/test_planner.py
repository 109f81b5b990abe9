"""From questions to answers: forms, failures, isolation, states."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headway.errors import ContextLengthError, RequestError
from headway.wire.decision_batch import read_decision_batch
from headway.wire.violations import SchemaError
from tests.runtime.decisions.table_model import TableModel, TableReader, answer, answer_request

NOUL = {"type": "noul", "instructions": "?", "criteria": {"true": "yes=1.5", "false": "no=0.5"}}
CHOICE = {"type": "choice", "instructions": "?", "criteria": {"a=1": None, "b=3": "bee"}}
SCORE = {"type": "score", "instructions": "?", "criteria": ["low=0", {"text": "high"}, "top"]}
SIGMOID_1 = 1 / (1 + math.exp(-1))


@pytest.fixture
def model() -> TableModel:
    return TableModel(TableReader())


def test_each_type_has_its_form(model: TableModel) -> None:
    body = answer(model, state="state", questions={"n": NOUL, "c": CHOICE, "s": SCORE})
    assert list(body["answers"]) == ["n", "c", "s"]
    assert body["answers"]["n"] == {"type": "noul", "noul": pytest.approx(SIGMOID_1), "x_read": 5}
    p = 1 / (1 + math.exp(-2))
    assert body["answers"]["c"] == {
        "type": "choice", "choice": "b=3", "probabilities": {"a=1": pytest.approx(1 - p), "b=3": pytest.approx(p)},
        "confidence": pytest.approx(2 * p - 1), "x_read": 5,
    }  # fmt: skip
    score = body["answers"]["s"]
    assert score["score"] == pytest.approx(1)
    assert score["legend"] == {"0": "low=0", "1": {"text": "high"}, "2": "top"}
    assert list(score["probabilities"]) == ["0", "1", "2"]
    assert body["usage"] == {"input_tokens": 15, "output_tokens": 0}
    assert body.keys() == {"answers", "usage"}


def test_a_set_is_answered_label_by_label(model: TableModel) -> None:
    question = {"type": "set", "instructions": "?", "labels": [{"key": "x=1"}, {"key": "y=-1", "description": "d"}], "threshold": 0.2}
    body = answer(model, state="s", questions={"k": question})
    assert body["sets"]["k"] == {"selected": ["x=1", "y=-1"], "probabilities": {"x=1": pytest.approx(SIGMOID_1), "y=-1": pytest.approx(1 - SIGMOID_1)}}
    assert body["answers"]["k.x=1"] == {"type": "noul", "noul": pytest.approx(SIGMOID_1), "x_read": 1}
    assert body["thresholds"] == {"k": 0.2}


def test_spans_keep_their_offsets(model: TableModel) -> None:
    body = answer(model, state={"user": "🙂 call Ana", "context": "Ana?"}, questions={"p": {"type": "span", "instructions": "?", "over": "user", "criteria": {"Ana": None}}})
    assert body["spans"]["p"] == [{"label": "Ana", "start": 7, "end": 10, "text": "Ana", "probability": 0.75}]
    assert body["answers"]["p"]["noul"] == 0.5
    assert body["thresholds"] == {"p": 0.5}


def test_failed_questions_do_not_fail_their_siblings(model: TableModel) -> None:
    questions = {
        "good": NOUL, "unknown": {"type": "boolean", "instructions": "?"}, "none": {"type": "choice", "criteria": {}}, "list": [],
        "row": {"type": "choice", "criteria": {"a=fail": None, "b": None}}, "nan": {"type": "choice", "criteria": {"a=nan": None, "b": None}},
    }  # fmt: skip
    answers = answer(model, state="s", questions=questions)["answers"]
    assert list(answers) == list(questions)
    assert answers["good"]["noul"] == pytest.approx(SIGMOID_1)
    assert [answers[name]["error"] for name in ("unknown", "none", "list")] == ["invalid_question"] * 3
    assert answers["row"]["error"] == "unavailable"
    assert answers["nan"]["error"] == "invalid_model_output"


def test_no_valid_question_is_the_error_of_the_request_and_names_all_reasons(model: TableModel) -> None:
    with pytest.raises(SchemaError) as caught:
        answer(model, state="s", questions={"a": {"type": "box"}, "b": {"type": "score", "criteria": ["one", None]}})
    assert [violation.loc for violation in caught.value.violations] == [("body", "questions", "a", "type"), ("body", "questions", "b", "criteria", 1)]
    assert "images" in caught.value.message
    assert "not null" in caught.value.message
    assert model.passes == []


def test_too_long_for_all_questions_is_an_error_where_answers_cannot_fail(model: TableModel) -> None:
    long = "x" * 1001
    with pytest.raises(ContextLengthError):
        answer(model, state=long, questions={"a": NOUL})
    body = answer(model, state=long, questions={"a": NOUL}, options={"return_meta": False})
    assert body["answers"]["a"]["error"] == "max_length_exceeded"


@pytest.mark.parametrize("extra", [{"images": ["data:image/png;base64,aGk="]}, {"options": {"max_tokens": 5}}])
def test_what_the_model_does_not_have_is_refused(model: TableModel, extra: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"reads text|scan budget"):
        answer(model, state="s", questions={"a": NOUL}, **extra)


def test_the_id_and_the_siblings_do_not_reach_the_model(model: TableModel) -> None:
    alone = answer(model, state="s", questions={"a": CHOICE})["answers"]["a"]
    among = answer(model, state="s", questions={"b": NOUL, "a renamed 🙂": CHOICE, "c": SCORE})["answers"]["a renamed 🙂"]
    assert alone == among
    assert not any("renamed" in repr(asked) for asked in model.reader.asked)


def test_over_narrows_the_state(model: TableModel) -> None:
    state = {"user": "u", "answer": "ans", "n": 1}
    questions = {"one": NOUL | {"over": "answer"}, "two": NOUL | {"over": ["answer", "user"]}, "no": NOUL | {"over": "nothing"}, "all": NOUL}
    answers = answer(model, state=state, questions=questions)["answers"]
    assert [subject.state for subject, _ in model.reader.asked] == ["ans", {"answer": "ans", "user": "u"}, state]
    assert answers["no"]["error"] == "invalid_question"
    assert all(question.over is None for _, question in model.reader.asked)
    assert answer(model, state=["a", "bb"], questions={"i": NOUL | {"over": 1}})["answers"]["i"]["x_read"] == 2


def test_presets_are_filled_in(model: TableModel) -> None:
    body = answer(model, state="s", questions={"w": {"type": "score", "preset": "warm"}, "x": {"type": "score", "preset": "cold"}, "y": {"type": "noul", "preset": "warm"}})
    assert body["answers"]["w"]["legend"] == {"0": "cold", "1": "warm=2"}
    assert body["answers"]["w"]["score"] > 0.8
    assert [body["answers"][name]["error"] for name in "xy"] == ["invalid_question"] * 2


def test_truncation_needs_a_model_with_a_truncated_view() -> None:
    question = {"q": NOUL | {"overflow": "truncate"}, "r": NOUL}
    assert answer(TableModel(TableReader()), state="s", questions=question)["answers"]["q"]["error"] == "invalid_question"
    able = TableModel(TableReader(), {"truncate_tokens": 9})
    assert "noul" in answer(able, state="s", questions=question)["answers"]["q"]
    assert able.reader.asked[0][1].truncate


def test_full_input_is_proven_or_the_question_fails(model: TableModel) -> None:
    question = {"q": NOUL | {"require_full_input": True}, "r": NOUL}
    answers = answer(model, state="s", questions=question)["answers"]
    assert answers["q"]["input_coverage"] == "complete"
    assert "input_coverage" not in answers["r"]
    assert answer(model, state="unread", questions=question)["answers"]["q"]["error"] == "max_length_exceeded"


def test_an_abstention_stands_beside_the_options() -> None:
    model = TableModel(TableReader(abstain=3.0))
    system_one = answer(model, state="s", questions={"q": CHOICE})["answers"]["q"]
    runtime = answer(model, state="s", questions={"q": CHOICE}, options={})["answers"]["q"]
    expected = math.exp(3) / (math.exp(1) + 2 * math.exp(3))
    assert system_one["x_abstain_probability"] == runtime["abstain_probability"] == pytest.approx(expected)
    assert sum(system_one["probabilities"].values()) == pytest.approx(1)


def test_states_are_requests_of_their_own(model: TableModel) -> None:
    part = {"state": "two", "questions": {"q": NOUL, "bad": {"type": "noul"}}}
    body = answer(model, state="one!", questions={"q": CHOICE}, states={"x": part, "none": {"state": "s", "questions": {"q": {"type": "box"}}}})
    assert list(body) == ["answers", "states", "usage"]
    assert body["states"]["x"]["answers"]["q"]["noul"] == pytest.approx(SIGMOID_1)
    assert body["states"]["x"]["answers"]["bad"]["error"] == "invalid_question"
    assert body["states"]["none"]["error"]["code"] == "invalid_request"
    assert body["usage"]["input_tokens"] == 4 + 3
    assert len(model.passes) == 2  # one row each; run_plan takes rows one by one


def test_a_batch_asks_the_same_of_many_states(model: TableModel) -> None:
    body = answer_request(model, read_decision_batch({"states": ["a", {"b": 1}], "questions": {"q": NOUL}}))
    assert [part["answers"]["q"]["noul"] for part in body["states"].values()] == [pytest.approx(SIGMOID_1)] * 2
    with pytest.raises(SchemaError):
        answer_request(model, read_decision_batch({"states": ["a", "b"], "questions": {"q": {"type": "box"}}}))


def test_four_hundred_questions_go_in_one_round(model: TableModel) -> None:
    plan = model.planners["decisions"]
    from headway.wire.decision_body import read_decision_body

    rows = next(plan(read_decision_body({"state": "s", "questions": {str(i): NOUL for i in range(400)}})))
    assert len(rows) == 400
