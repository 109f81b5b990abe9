"""OpenAI's decisions, against the types of its SDK."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.decision import Decision

from headway.wire.decisions import Option, Question
from headway.wire.openai_decision_answer import openai_answer
from headway.wire.openai_decisions import is_openai, read_openai_decisions
from headway.wire.violations import SchemaError

PREDICATE = {"type": "predicate", "instructions": "Is it late?", "name": "late"}
CHOICE = {"type": "choice", "instructions": "Which?", "choices": [{"value": True}, {"value": "true", "description": "the word"}, {"value": "b"}]}
SCORE = {"type": "score", "instructions": [{"type": "input_text", "text": "How?"}], "levels": [{"label": "lo"}, {"label": "hi", "description": "much"}]}


def state_of(given: Any) -> str:
    request = read_openai_decisions({"input": given, "questions": [PREDICATE]}).request
    assert request.main is not None
    state: str = request.main.state
    return state


def test_questions_become_those_of_system_one() -> None:
    asked = read_openai_decisions({"model": "m", "input": "x", "questions": [PREDICATE, CHOICE, SCORE]})
    assert asked.request.main is not None
    assert list(asked.request.main.questions.values()) == [
        Question("noul", "Is it late?", (Option("false"), Option("true"))),
        Question("choice", "Which?", (Option("true (boolean)"), Option("true", "the word"), Option("b"))),
        Question("score", "How?", (Option("0", "lo"), Option("1", "hi: much"))),
    ]


def test_answers_are_what_the_sdk_reads() -> None:
    asked = read_openai_decisions({"input": "x", "questions": [PREDICATE, CHOICE, SCORE, PREDICATE]})
    body = {
        "answers": {
            "0": {"type": "noul", "noul": 0.25, "x_a": 1},
            "1": {"type": "choice", "choice": "true (boolean)", "probabilities": {"true (boolean)": 0.6, "true": 0.3, "b": 0.1}, "confidence": 0.4},
            "2": {"type": "score", "score": 0.7, "legend": {}, "probabilities": {"0": 0.3, "1": 0.7}, "confidence": 0.2},
            "3": {"type": "noul", "error": "max_length_exceeded", "message": "too long"},
        },
        "usage": {"input_tokens": 12, "output_tokens": 0},
    }
    found = openai_answer(body, asked.questions, "m")
    parsed = Decision.model_validate(found)
    late, which, how, refused = parsed.answers
    assert (late.type, late.name, late.probability) == ("predicate", "late", 0.25)
    assert which.type == "choice"
    assert which.choice is True
    assert [(type(each.value), each.value, each.probability) for each in which.probabilities] == [(bool, True, 0.6), (str, "true", 0.3), (str, "b", 0.1)]
    assert [(each.value, each.label, each.probability) for each in how.probabilities] == [(0, "lo", 0.3), (1, "hi", 0.7)]
    assert (refused.type, refused.name) == ("refusal", "late")
    assert found["answers"][3]["x_error"] == "max_length_exceeded"
    assert parsed.usage.total_tokens == 12


def test_one_user_message_is_its_text() -> None:
    content = [{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}, {"type": "input_json", "data": {"k": ["é"]}}]
    assert state_of([{"role": "user", "content": content}]) == 'a\n\n{"k": ["é"]}'


def test_a_conversation_keeps_who_said_what() -> None:
    items = [
        {"role": "system", "content": "be kind"}, {"type": "message", "role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "hello"}, {"type": "refusal", "refusal": "no"}], "phase": "commentary"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "42"},
    ]  # fmt: skip
    assert state_of(items) == "system: be kind\n\nuser: hi\n\nassistant: hello\n\nno\n\ntool call: f({})\n\ntool output: 42"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"), ({"input": " "}, "input"), ({"input": []}, "input"), ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call_output", "call_id": "9", "output": "x"}]}, "input[0].call_id"),
        ({"questions": []}, "questions"), ({"questions": [PREDICATE] * 401}, "questions"), ({"questions": [{"type": "noul"}]}, "questions[0].type"),
        ({"questions": [PREDICATE | {"instructions": " "}]}, "questions[0].instructions"), ({"questions": [PREDICATE | {"name": 5}]}, "questions[0].name"),
        ({"questions": [CHOICE | {"choices": [{"value": "a"}, {"value": "a"}]}]}, "questions[0].choices"),
        ({"questions": [CHOICE | {"choices": [{"value": 1}, {"value": "a"}]}]}, "questions[0].choices[0]"),
        ({"questions": [CHOICE | {"choices": [{"value": "a"}]}]}, "questions[0].choices"), ({"questions": [SCORE | {"levels": [{"label": str(i)} for i in range(11)]}]}, "questions[0].levels"),
        ({"temperature": 0}, "temperature"), ({"stream": True}, "stream"), ({"safety_identifier": "x" * 129}, "safety_identifier"),
        ({"prompt_cache_options": {"ttl": "1h"}}, "prompt_cache_options"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(change: dict[str, Any], param: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_openai_decisions({"input": "x", "questions": [PREDICATE]} | change)
    assert caught.value.param == param


def test_the_body_tells_who_speaks() -> None:
    assert is_openai({"input": "x", "questions": []})
    assert is_openai({"questions": []})
    assert not is_openai({"state": "x", "questions": []})
    assert not is_openai({})
