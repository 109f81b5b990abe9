"""Bodies of System One and of the runtime, as they are checked."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.wire.decision_batch import read_decision_batch
from headway.wire.decision_body import read_decision_body
from headway.wire.decisions import DecisionMedia, InvalidQuestion, Option, Question
from headway.wire.openai_decisions import read_openai_decisions
from headway.wire.violations import SchemaError

NOUL = {"type": "noul", "instructions": "?"}


def read(question: Any, **more: Any) -> Question | InvalidQuestion:
    request = read_decision_body({"state": "s", "questions": {"q": question}, **more})
    assert request.main is not None
    return request.main.questions["q"]


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (NOUL, (Option("false"), Option("true"))),
        (NOUL | {"criteria": None}, (Option("false"), Option("true"))),
        (NOUL | {"criteria": {"true": "yes"}}, (Option("false"), Option("true", "yes"))),
        (NOUL | {"choices": [{"key": "true", "description": "y"}, {"key": "false"}]}, (Option("false"), Option("true", "y"))),
        ({"type": "choice", "criteria": {"b": None, "a": ["x"]}}, (Option("b"), Option("a", ["x"]))),
        ({"type": "choice", "instructions": "?", "choices": [{"key": "b"}, {"key": "a"}]}, (Option("b"), Option("a"))),
        ({"type": "score", "criteria": ["lo", {"hi": 1}]}, (Option("0", "lo"), Option("1", {"hi": 1}))),
        ({"type": "score", "instructions": "?", "levels": ["lo", "hi"]}, (Option("0", "lo"), Option("1", "hi"))),
        ({"type": "set", "instructions": "?", "criteria": {"a": None}}, (Option("a"),)),
        ({"type": "span", "instructions": "?", "labels": [{"key": "a"}], "head": "broad"}, (Option("a"),)),
        ({"type": "span", "preset": "pii"}, ()),
    ],
)  # fmt: skip
def test_every_form_becomes_one_question(question: dict[str, Any], options: tuple[Option, ...]) -> None:
    found = read(question)
    assert isinstance(found, Question)
    assert found.options == options


@pytest.mark.parametrize(
    ("question", "kind", "loc"),
    [
        ("text", "model_attributes_type", ()),
        ({"instructions": "?"}, "missing", ("type",)),
        ({"type": "boolean", "instructions": "?"}, "union_tag_invalid", ("type",)),
        ({"type": {}, "instructions": "?"}, "union_tag_invalid", ("type",)),
        ({"type": "noul"}, "missing", ("instructions",)),
        ({"type": "noul", "instructions": " "}, "missing", ("instructions",)),
        ({"type": "noul", "instructions": 5}, "string_type", ("instructions",)),
        (NOUL | {"criteria": {"maybe": "x"}}, "extra_forbidden", ("criteria",)),
        ({"type": "choice"}, "missing", ("criteria",)),
        ({"type": "choice", "criteria": {}}, "too_short", ("criteria",)),
        ({"type": "choice", "criteria": {"a": None}}, "too_short", ("criteria",)),
        ({"type": "choice", "criteria": {str(i): None for i in range(256)}}, "too_long", ("criteria",)),
        ({"type": "choice", "criteria": {"a": 1, "b": None}}, "string_type", ("criteria", "a")),
        ({"type": "choice", "criteria": ["a", "b"]}, "dict_type", ("criteria",)),
        ({"type": "choice", "instructions": "?", "choices": [{"key": "a"}, {"key": "a"}]}, "value_error", ("choices", 1, "key")),
        ({"type": "choice", "instructions": "?", "choices": [{"key": "a"}], "criteria": {"a": None}}, "value_error", ("choices",)),
        ({"type": "score", "criteria": {"0": "a", "1": "b"}}, "list_type", ("criteria",)),
        ({"type": "score", "criteria": ["a"]}, "too_short", ("criteria",)),
        ({"type": "score", "criteria": ["x"] * 11}, "too_long", ("criteria",)),
        ({"type": "score", "criteria": ["a", None]}, "string_type", ("criteria", 1)),
        (NOUL | {"threshold": 0.5}, "extra_forbidden", ("threshold",)),
        ({"type": "set", "criteria": {"a": None}, "instructions": "?", "choices": []}, "extra_forbidden", ("choices",)),
        ({"type": "set", "criteria": {"a": None}, "instructions": "?", "head": "router"}, "extra_forbidden", ("head",)),
        ({"type": "set", "criteria": {"a": None}, "instructions": "?", "threshold": 1.5}, "float_type", ("threshold",)),
        ({"type": "set", "criteria": {"a": None}, "instructions": "?", "threshold": True}, "float_type", ("threshold",)),
        ({"type": "set", "criteria": {"a": None}}, "missing", ("instructions",)),
        (NOUL | {"over": []}, "string_type", ("over",)),
        (NOUL | {"overflow": "window"}, "literal_error", ("overflow",)),
        (NOUL | {"overflow": "truncate", "require_full_input": True}, "value_error", ("overflow",)),
        (NOUL | {"over": "a", "surprise": 1}, "extra_forbidden", ("surprise",)),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_says_what_and_where(question: Any, kind: str, loc: tuple[str | int, ...]) -> None:
    found = read(question)
    assert isinstance(found, InvalidQuestion)
    assert [(violation.kind, violation.loc) for violation in found.violations] == [(kind, loc)]


def test_unknown_fields_of_system_one_are_ignored() -> None:
    assert isinstance(read(NOUL | {"note": "x"}, x_nonce=1, seed=7, temperature=0), Question)


def test_the_message_names_the_field_that_the_type_does_not_take() -> None:
    found = read({"type": "set", "instructions": "?", "criteria": {"a": None}, "levels": []})
    assert isinstance(found, InvalidQuestion)
    assert found.message == "set questions do not take ['levels']"


@pytest.mark.parametrize(
    ("body", "loc", "kind"),
    [
        ({"questions": {"q": NOUL}}, ("body", "state"), "missing"),
        ({"state": None, "questions": {"q": NOUL}}, ("body", "state"), "string_type"),
        ({"state": 5, "questions": {"q": NOUL}}, ("body", "state"), "string_type"),
        ({"state": "  ", "questions": {"q": NOUL}}, ("body", "state"), "too_short"),
        ({"state": "s"}, ("body", "questions"), "missing"),
        ({"state": "s", "questions": {}}, ("body", "questions"), "too_short"),
        ({"state": "s", "questions": [NOUL]}, ("body", "questions"), "dict_type"),
        ({"state": "s", "questions": {str(i): NOUL for i in range(401)}}, ("body", "questions"), "too_long"),
        ({"state": "s", "questions": {"q": NOUL}, "assets": {"a": {}}}, ("body", "assets"), "value_error"),
        ({"state": "s", "questions": {"q": NOUL}, "stream": True}, ("body", "stream"), "value_error"),
        ({"state": [{"role": "user", "content": [{"type": "image_url"}]}], "questions": {"q": NOUL}}, ("body", "state"), "value_error"),
        ({"state": "s", "questions": {"q": NOUL}, "options": {"profile": "x"}}, ("body", "options", "profile"), "extra_forbidden"),
        ({"state": "s", "questions": {"q": NOUL}, "options": {"deadline_ms": 0}}, ("body", "options", "deadline_ms"), "greater_than"),
        ({"state": "s", "questions": {"q": NOUL}, "options": {"max_tokens": True}}, ("body", "options", "max_tokens"), "greater_than"),
        ({"state": "s", "questions": {"q": NOUL}, "options": {"max_tokens": (1 << 22) + 1}}, ("body", "options", "max_tokens"), "less_than_equal"),
        ({"states": {"a": {"state": "s"}}}, ("body", "states", "a"), "dict_type"),
        ({"states": {"a": {"state": "", "questions": {}}}}, ("body", "states", "a", "state"), "too_short"),
        ({"states": {str(i): {"state": "s", "questions": {"q": NOUL}} for i in range(65)}}, ("body", "states"), "too_long"),
        ({"state": "s", "questions": {"q": NOUL}, "images": ["https://x/y.png"]}, ("body", "images", 0), "value_error"),
        ({"state": "s", "questions": {"q": NOUL}, "images": ["data:image/png;base64,!!"]}, ("body", "images", 0), "value_error"),
        ({"state": "s", "questions": {"q": NOUL}, "videos": ["data:video/mp4;base64,aA=="] * 2}, ("body", "videos"), "too_long"),
    ],
)  # fmt: skip
def test_a_broken_body_says_where(body: dict[str, Any], loc: tuple[str | int, ...], kind: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_decision_body(body)
    assert (loc, kind) in [(violation.loc, violation.kind) for violation in caught.value.violations]


def test_all_that_is_wrong_with_a_body_is_said_at_once() -> None:
    with pytest.raises(SchemaError) as caught:
        read_decision_body({})
    assert [violation.loc for violation in caught.value.violations] == [("body", "state"), ("body", "questions")]


def test_media_and_options_are_read() -> None:
    request = read_decision_body({
        "state": "s", "questions": {"q": NOUL}, "images": ["data:image/png;base64,aGk="], "videos": [],
        "options": {"deadline_ms": 5, "return_meta": True, "max_tokens": 7},
    })  # fmt: skip
    assert request.media == (DecisionMedia("image", b"hi"),)
    assert (request.max_tokens, request.options.deadline_ms, request.options.return_meta, request.dialect) == (7, 5.0, True, "runtime")


def test_answers_of_a_set_may_not_take_the_place_of_another_question() -> None:
    labels = {"type": "set", "instructions": "?", "criteria": {"b": None}}
    request = read_decision_body({"state": "s", "questions": {"a": labels, "a.b": NOUL, "c": labels}})
    assert request.main is not None
    kinds = {name: type(question) for name, question in request.main.questions.items()}
    assert kinds == {"a": InvalidQuestion, "a.b": Question, "c": Question}


def test_two_sets_may_not_answer_under_the_same_id() -> None:
    one = {"type": "set", "instructions": "?", "criteria": {"b.c": None}}
    two = {"type": "set", "instructions": "?", "criteria": {"c": None}}
    request = read_decision_body({"state": "s", "questions": {"a": one, "a.b": two}})
    assert request.main is not None
    assert [type(question) for question in request.main.questions.values()] == [Question, InvalidQuestion]


@pytest.mark.parametrize("name", [" ", "with space", "질문", "🎯", "q.2"])
def test_any_id_that_is_not_empty_is_one(name: str) -> None:
    request = read_decision_body({"state": "s", "questions": {name: NOUL, "": NOUL}})
    assert request.main is not None
    assert isinstance(request.main.questions[name], Question)
    assert isinstance(request.main.questions[""], InvalidQuestion)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["choice", "noul", "score", "set", "span", "message", "input_text", "predicate"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["type", "criteria", "instructions", "labels", "choices", "levels", "over", "key", "value", "label", "role", "content",
                         "state", "questions", "states", "options", "input", "images", "text", "a"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["state", "questions", "states", "options", "input", "images", "model"]), json_values, max_size=5))
def test_whatever_comes_is_read_or_refused(body: dict[str, Any]) -> None:
    for read_body in (read_decision_body, read_decision_batch, read_openai_decisions):
        with suppress(RequestError):
            read_body(body)
