"""From bytes to a checked body: every failure names the field and stays short."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.wire.chat import ChatBody
from headway.wire.completions import CompletionBody
from headway.wire.limits import BodyLimits
from headway.wire.parse import parse_body, parse_object

USER = [{"role": "user", "content": "x"}]


def refused(model: type[Any], fields: dict[str, Any]) -> RequestError:
    with pytest.raises(RequestError) as found:
        parse_body(model, fields)
    assert found.value.reason == "body_invalid"
    assert len(found.value.message) <= 4000
    return found.value


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"not json", "line 1, column 1"),
        (b'{"a": ', "not valid JSON"),
        (b"[1, 2]", "JSON list"),
        (b'"text"', "JSON string"),
        (b"null", "JSON null"),
        (b"7", "JSON number"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": "\\ud83d"}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
    ],
)
def test_bytes_that_are_no_object(raw: bytes, words: str) -> None:
    with pytest.raises(RequestError, match="The body") as found:
        parse_object(raw, BodyLimits())
    assert words in found.value.message
    assert found.value.reason == "body_invalid"


@given(st.binary(max_size=200))
def test_any_bytes_give_an_object_or_a_request_error(raw: bytes) -> None:
    with contextlib.suppress(RequestError):
        assert isinstance(parse_object(raw, BodyLimits()), dict)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": 7}, "stop"),
        ({"stop": [[1]]}, "stop"),
        ({"n": "x"}, "n"),
        ({"stream": "perhaps"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {"abc": 1}}, "logit_bias.abc"),
        ({"logprobs": "x"}, "logprobs"),
        ({"logprobs": -3}, "logprobs"),
        ({"seed": "x"}, "seed"),
        ({"cache_salt": ""}, "cache_salt"),
        ({"cache_salt": "s" * 1025}, "cache_salt"),
        ({"truncation_side": "middle"}, "truncation_side"),
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens"),
        ({"stream_options": "x", "stream": True}, "stream_options"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream_options": {"include_usage": "x"}, "stream": True}, "stream_options.include_usage"),
        ({"stream": True, "prompt_logprobs": 1}, "prompt_logprobs"),
        ({"allowed_token_ids": "x"}, "allowed_token_ids"),
        ({"stop_token_ids": [1.5]}, "stop_token_ids[0]"),
        ({"echo": "yes"}, "echo"),
    ],
)
def test_completion_fields_of_a_wrong_kind(fields: dict[str, Any], param: str) -> None:
    assert refused(CompletionBody, {"prompt": "x", **fields}).param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": [7]}, "messages[0]"),
        ({"max_tokens": []}, "max_tokens"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -2}, "top_logprobs"),
        ({"logprobs": 5}, "logprobs"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}}, "response_format.json_schema.name"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
    ],
)
def test_chat_fields_of_a_wrong_kind(fields: dict[str, Any], param: str) -> None:
    assert refused(ChatBody, {"messages": USER, **fields}).param == param


def test_nulls_count_as_absent_and_unknown_fields_are_ignored() -> None:
    plain = parse_body(CompletionBody, {"prompt": "x"})
    fields = {name: None for name in CompletionBody.model_fields if name != "prompt"}
    assert parse_body(CompletionBody, {"prompt": "x", "no_such_field": [1], **fields}) == plain


def test_thousands_of_fields_are_refused() -> None:
    raw = json.dumps({f"field{i}": i for i in range(1001)}).encode()
    with pytest.raises(RequestError, match="The body has 1001 fields, the limit is 1000"):
        parse_object(raw, BodyLimits())


def test_a_required_field_cannot_be_null() -> None:
    assert refused(CompletionBody, {"prompt": None}).param == "prompt"
    assert refused(CompletionBody, {}).message == "prompt: field required"


def test_whole_floats_are_integers() -> None:
    body = parse_body(CompletionBody, {"prompt": "x", "max_tokens": 5.0, "temperature": 1})
    assert (body.max_tokens, body.temperature) == (5, 1.0)
    assert type(body.max_tokens) is int


def test_token_ids_of_logit_bias_are_integers() -> None:
    body = parse_body(CompletionBody, {"prompt": "x", "logit_bias": {"12": 1, "-1": 0.5}})
    assert body.logit_bias == {12: 1.0, -1: 0.5}


def test_ten_findings_at_most_and_long_inputs_are_cut() -> None:
    fields = {"prompt": "x", "temperature": "h" * 10_000} | {name: {} for name in ("top_p", "top_k", "min_p", "seed", "n", "stop")}
    fields |= {name: {} for name in ("bad_words", "user", "priority", "echo", "stream", "ignore_eos")}
    message = refused(CompletionBody, fields).message
    assert message.count(";") == 10
    assert message.endswith("more")
    assert "h" * 201 not in message


def test_a_huge_wrong_value_is_never_shown_whole() -> None:
    error = refused(CompletionBody, {"prompt": "x", "temperature": list(range(1_000_000))})
    assert len(error.message) < 500


def test_the_default_of_one_body_is_not_that_of_another() -> None:
    first, second = (parse_body(CompletionBody, json.loads('{"prompt": "x"}')) for _ in range(2))
    first.bad_words.append("x")
    assert second.bad_words == []
