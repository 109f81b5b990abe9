"""Chat messages become texts; what cannot be one is named by index."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headway.errors import RequestError
from headway.wire.messages import ROLES, plain_messages


def content(value: Any) -> str:
    return str(plain_messages([{"role": "user", "content": value}])[0]["content"])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"text": "a"}], "a"),
        ([{"type": "input_text", "text": "a"}, "b"], "a\nb"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
    ],
)
def test_content(given: Any, text: str) -> None:
    assert content(given) == text


@pytest.mark.parametrize(
    ("given", "param", "reason"),
    [
        (7, "messages[0].content", "body_invalid"),
        ({"type": "text"}, "messages[0].content", "body_invalid"),
        ([7], "messages[0].content[0]", "body_invalid"),
        (["a", {"type": "txet", "text": "b"}], "messages[0].content[1]", "content_part_unsupported"),
        ([{"type": "image_url", "image_url": {"url": "x"}}], "messages[0].content[0]", "content_part_unsupported"),
        ([{"type": "input_audio"}], "messages[0].content[0]", "content_part_unsupported"),
        ([{"type": "text", "text": 7}], "messages[0].content[0].text", "body_invalid"),
        ([{"type": "text"}], "messages[0].content[0].text", "body_invalid"),
        ([{"type": ["text"]}], "messages[0].content[0].type", "body_invalid"),
        ([{}], "messages[0].content[0].type", "body_invalid"),
    ],
)
def test_content_that_is_no_text(given: Any, param: str, reason: str) -> None:
    with pytest.raises(RequestError) as found:
        content(given)
    assert (found.value.param, found.value.reason) == (param, reason)


def test_roles() -> None:
    assert [m["role"] for m in plain_messages([{"role": role, "content": "x"} for role in ROLES])] == list(ROLES)
    for wrong in ({"role": "wizard", "content": "x"}, {"content": "x"}, {"role": 7}, {"role": ["user"]}):
        with pytest.raises(RequestError, match=r"messages\[1\]\.role") as found:
            plain_messages([{"role": "user", "content": "x"}, wrong])
        assert found.value.param == "messages[1].role"


def test_only_what_templates_know_is_passed_on() -> None:
    message = {"role": "tool", "content": "7", "tool_call_id": "call-1", "name": "add", "weight": 1}
    assert plain_messages([message]) == [{"role": "tool", "content": "7", "tool_call_id": "call-1", "name": "add"}]


def test_arguments_of_earlier_tool_calls_are_objects() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    found = plain_messages([{"role": "assistant", "content": None, "tool_calls": calls}])[0]
    assert found["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert calls[0]["function"] == {"name": "f", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    ("calls", "path", "wrong"),
    [
        ("x", "", "is of type str, expected a list"),
        ([7], "[0]", "is of type int, expected an object"),
        ([{"id": "1"}], "[0].function", "is missing, expected an object"),
        ([{"function": "f"}], "[0].function", "is of type str, expected an object"),
        ([{"function": {}}], "[0].function.name", "is missing, expected a text"),
        ([{"function": {"name": "f", "arguments": "{"}}], "[0].function.arguments", "is not JSON"),
    ],
)
def test_broken_tool_calls_are_named(calls: Any, path: str, wrong: str) -> None:
    path = f"messages[0].tool_calls{path}"
    with pytest.raises(RequestError, match=re.escape(f"{path} {wrong}")) as found:
        plain_messages([{"role": "assistant", "tool_calls": calls}])
    assert found.value.param == path
