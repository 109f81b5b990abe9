"""Chat completions through OpenAI's Responses API, written down from its public reference."""

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
from headway.router.upstream.formats.responses_answer import chunks_of_response, completion_of_response
from headway.router.upstream.formats.responses_request import responses_request
from tests.router.upstream.harness import Sender, document, model, run
from tests.router.upstream.scripted_backend import ScriptedBackend, answers, streams

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "gpt", "incomplete_details": None,
    "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
        {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at":"sky"}'},
    ],
    "usage": {
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}  # fmt: skip


def asked(**body: Any) -> dict[str, Any]:
    return responses_request({"model": "gpt", "messages": [{"role": "user", "content": "hi"}], **body}, Losses())


def test_a_conversation_becomes_items() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "image_url", "image_url": {"url": "https://h/i.png", "detail": "low"}}]},
        {"role": "assistant", "content": "wait", "tool_calls": [{"id": "t1", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "blue"},
    ]
    assert asked(messages=messages)["input"] == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "what"}, {"type": "input_image", "image_url": "https://h/i.png", "detail": "low"}],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "wait"}]},
        {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t1", "output": "blue"},
    ]


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({}, "store", False),
        ({"max_tokens": 3}, "max_output_tokens", 3),
        ({"reasoning_effort": "low"}, "reasoning", {"effort": "low"}),
        ({"tools": [TOOL]}, "tools", [{"type": "function", "strict": False, "name": "look", "parameters": {"type": "object"}}]),
        ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, "tool_choice", {"type": "function", "name": "look"}),
        ({"logprobs": True, "top_logprobs": 2}, "top_logprobs", 2),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}},
            "text",
            {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}},
        ),
    ],
)
def test_fields_have_their_counterparts(body: dict[str, Any], field: str, expected: Any) -> None:
    assert asked(**body)[field] == expected


@pytest.mark.parametrize("body", [{"n": 2}, {"stop": "x"}, {"presence_penalty": 1}])
def test_what_the_api_cannot_do_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**body)
    assert caught.value.param == next(iter(body))


def test_a_response_becomes_a_completion() -> None:
    found = completion_of_response(RESPONSE)
    choice = found["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"], choice["message"]["reasoning_content"]) == ("tool_calls", "I look.", "hm")
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"sky"}'}
    assert (found["usage"]["prompt_tokens"], found["usage"]["prompt_tokens_details"]["cached_tokens"]) == (10, 4)
    cut = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert completion_of_response(cut)["choices"][0]["finish_reason"] == "length"


EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "I look."},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "call_id": "t1", "name": "look"}},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"at":'},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '"sky"}'},
    {"type": "response.completed", "response": RESPONSE},
]


async def _data(events: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for event in events:
        yield json.dumps(event).encode()


def test_events_become_chunks() -> None:
    async def collect() -> list[dict[str, Any]]:
        return [chunk async for chunk in chunks_of_response(_data(EVENTS), True)]

    chunks = asyncio.run(collect())
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look."
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"at": "sky"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["completion_tokens"] == 5


def test_a_backend_with_this_api_is_asked_in_its_way_and_its_failures_are_errors() -> None:
    def framed(events: list[dict[str, Any]]) -> bytes:
        return b"".join(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events)

    async def work(script: Any, stream: bool) -> Any:
        async with ScriptedBackend([script]) as backend:
            sender = Sender(document([model("m", backend.endpoint, api_format="responses")]))
            try:
                reply, _ = await sender.send(stream=stream)
                found = [chunk async for chunk in chunks_of(reply)] if stream else body_of(reply)
            finally:
                await sender.close()
            assert backend.asked[0].path == "/v1/responses"
            return found

    assert run(lambda: work(answers(RESPONSE), False))["choices"][0]["message"]["content"] == "I look."
    assert len(run(lambda: work(streams(framed(EVENTS)), True))) == 6
    with pytest.raises(UpstreamError, match="not valid"):
        run(lambda: work(answers({**RESPONSE, "status": "failed"}), False))
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}
    with pytest.raises(UpstreamError, match="server_error"):
        run(lambda: work(streams(framed([*EVENTS[:3], failed])), True))
