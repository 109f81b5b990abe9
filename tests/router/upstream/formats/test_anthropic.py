"""Chat completions through Anthropic's Messages API, written down from its public reference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.request.decoding import body_of, chunks_of
from headway.router.upstream.errors import UpstreamError
from headway.router.upstream.formats.anthropic_answer import chunks_of_message, completion_of_message
from headway.router.upstream.formats.anthropic_request import messages_request
from tests.router.upstream.harness import Sender, document, run
from tests.router.upstream.scripted_backend import ScriptedBackend, answers, streams

TOOL = {"type": "function", "function": {"name": "look", "description": "Look", "parameters": {"type": "object"}}}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use", "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "sky"}},
    ],
    "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2},
}  # fmt: skip


def asked(**body: Any) -> dict[str, Any]:
    return messages_request({"model": "claude", "messages": [{"role": "user", "content": "hi"}], **body}, Losses())


def test_a_conversation_keeps_its_turns_and_its_instructions() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://h/i.png"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "blue"},
        {"role": "developer", "content": "Be short."},
    ]
    found = asked(messages=messages, tools=[TOOL], max_tokens=7)
    assert found["system"] == "Be kind.\n\nBe short."
    assert found["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "image", "source": {"type": "url", "url": "https://h/i.png"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "blue"}]},
    ]
    assert found["tools"] == [{"name": "look", "description": "Look", "input_schema": {"type": "object"}}]
    assert found["max_tokens"] == 7


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({"stop": "x"}, "stop_sequences", ["x"]),
        ({"user": "u"}, "metadata", {"user_id": "u"}),
        ({"max_completion_tokens": 9, "max_tokens": 3}, "max_tokens", 9),
        ({}, "max_tokens", 4096),
        ({"tools": [TOOL], "tool_choice": "required"}, "tool_choice", {"type": "any"}),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}}, "tool_choice", {"type": "tool", "name": "look"}),
        ({"tools": [TOOL], "parallel_tool_calls": False}, "tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
        ({"reasoning_effort": "high"}, "output_config", {"effort": "high"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
            "output_config",
            {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        ),
    ],
)
def test_fields_have_their_counterparts(body: dict[str, Any], field: str, expected: Any) -> None:
    assert asked(**body)[field] == expected


@pytest.mark.parametrize("body", [{"n": 2}, {"logprobs": True}, {"logit_bias": {"1": 2}}, {"frequency_penalty": 0.5}, {"response_format": {"type": "json_object"}}])
def test_what_the_api_cannot_do_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**body)
    assert (caught.value.reason, caught.value.param) == ("not_built", next(iter(body)))


def test_what_is_left_out_is_told() -> None:
    losses = Losses()
    messages_request({"model": "m", "messages": [], "seed": 1, "n": 1, "frequency_penalty": 0}, losses)
    assert [loss.field for loss in losses.found] == ["seed"]


def test_a_message_becomes_a_completion() -> None:
    found = completion_of_message(MESSAGE)
    choice = found["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I look."
    assert choice["message"]["reasoning_content"] == "hm"
    assert choice["message"]["tool_calls"] == [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":"sky"}'}}]
    assert (found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"], found["usage"]["total_tokens"]) == (15, 5, 20)
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 3


EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": {"input_tokens": 10, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "look", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"sky"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


async def _data(events: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for event in events:
        yield json.dumps(event).encode()


def test_events_become_chunks() -> None:
    async def collect() -> list[dict[str, Any]]:
        return [chunk async for chunk in chunks_of_message(_data(EVENTS), True)]

    chunks = asyncio.run(collect())
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look."
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert (calls[0]["id"], calls[0]["function"]["name"], {call["index"] for call in calls}) == ("t1", "look", {0})
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"at": "sky"}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]][-1] == "tool_calls"
    assert chunks[-1]["usage"]["total_tokens"] == 15


def _framed(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events)


def through(script: Any, stream: bool) -> tuple[Any, Any, Any]:
    async def work() -> tuple[Any, Any, Any]:
        async with ScriptedBackend([script]) as backend:
            refs = [{"base_url": f"http://{backend.endpoint}", "provider": "anthropic-compatible", "api_key": "k"}]
            sender = Sender(document([{"name": "m", "api_format": "anthropic", "backend_refs": refs}]))
            try:
                reply, context = await sender.send(stream=stream)
                found = [chunk async for chunk in chunks_of(reply)] if stream else body_of(reply)
                return found, context, backend.asked[0]
            finally:
                await sender.close()

    return run(work)


def test_a_backend_with_this_api_is_asked_in_its_way() -> None:
    found, context, request = through(answers(MESSAGE), stream=False)
    assert found["choices"][0]["message"]["content"] == "I look."
    assert (request.path, request.headers["x-api-key"], request.headers["anthropic-version"]) == ("/v1/messages", "k", "2023-06-01")
    assert "authorization" not in request.headers
    assert context.response_headers["x-vsr-upstream-protocol"] == "anthropic"


def test_its_stream_arrives_as_chunks_and_a_broken_one_as_an_error() -> None:
    found, _, _ = through(streams(_framed(EVENTS[:5]), _framed(EVENTS[5:])), stream=True)
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    with pytest.raises(UpstreamError, match="without the final event"):
        through(streams(_framed(EVENTS[:5])), stream=True)
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "secret details"}}
    with pytest.raises(UpstreamError, match="overloaded_error") as caught:
        through(streams(_framed([*EVENTS[:5], failed])), stream=True)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"content": 3}', b'"text"'])
def test_an_answer_of_another_shape_is_no_200(answer: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid"):
        through(answers(answer), stream=False)
