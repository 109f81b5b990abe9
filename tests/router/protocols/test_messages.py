"""Anthropic's Messages through the router, with Anthropic's own client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest

from headway.errors import HeadwayError
from headway.router.protocols.anthropic.request import chat_body
from headway.router.protocols.translation import Losses
from tests.router.listener.live_front import AUTO, LiveFront, decision, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, streams

TOOL = {"name": "weather", "description": "of a city", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
USER: list[Any] = [{"role": "user", "content": "hi"}]


def completion(message: dict[str, Any], finish: str, **rest: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34, "prompt_tokens_details": {"cached_tokens": 10}}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, **rest}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice], "usage": usage}


def delta(finish: str | None = None, **said: Any) -> bytes:
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]}).encode() + b"\n\n"


USAGE = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":4}}\n\n'


def call(index: int, **fields: Any) -> dict[str, Any]:
    return {"index": index, **fields}


def test_text_thinking_and_counts(tmp_path: Path) -> None:
    message = {"content": "hello", "reasoning_content": "they greet"}

    async def work() -> None:
        async with ScriptedBackend([answers(completion(message, "length"))]) as backend, LiveFront(backend, tmp_path) as front:
            found = await front.anthropic().messages.create(model="m", max_tokens=5, system="be nice", messages=USER, stop_sequences=["x"])
            assert [block.type for block in found.content] == ["thinking", "text"]
            assert (found.stop_reason, found.model) == ("max_tokens", "m-1")
            assert (found.usage.input_tokens, found.usage.cache_read_input_tokens, found.usage.output_tokens) == (20, 10, 4)
            sent = backend.asked[0].body
            assert sent["messages"] == [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hi"}]
            assert (sent["max_tokens"], sent["stop"]) == (5, ["x"])

    run(work)


def test_a_tool_is_called_and_its_result_goes_back(tmp_path: Path) -> None:
    calls = [{"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}]

    async def work() -> None:
        scripts = [answers(completion({"content": None, "tool_calls": calls}, "tool_calls")), answers(completion({"content": "rain"}, "stop"))]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path) as front:
            client = front.anthropic()
            tools: list[Any] = [TOOL]
            first = await client.messages.create(model="m", max_tokens=9, messages=USER, tools=tools, tool_choice={"type": "any"})
            use = first.content[0]
            assert isinstance(use, anthropic.types.ToolUseBlock)
            assert (first.stop_reason, use.id, use.input) == ("tool_use", "t1", {"city": "Ulm"})
            history: list[Any] = [
                *USER,
                {"role": "assistant", "content": [block.model_dump() for block in first.content]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "wet"}, {"type": "text", "text": "and?"}]},
            ]
            await client.messages.create(model="m", max_tokens=9, messages=history, tools=tools)
            assert backend.asked[0].body["tool_choice"] == "required"
            assert backend.asked[0].body["tools"][0]["function"]["parameters"] == TOOL["input_schema"]
            _, spoken, result, rest = backend.asked[1].body["messages"]
            assert json.loads(spoken["tool_calls"][0]["function"]["arguments"]) == {"city": "Ulm"}
            assert result == {"role": "tool", "tool_call_id": "t1", "content": "wet"}
            assert rest == {"role": "user", "content": "and?"}

    run(work)


def test_a_stream_of_thought_text_and_two_calls_is_put_together_by_the_client(tmp_path: Path) -> None:
    pieces = [
        delta(role="assistant", content=""),
        delta(reasoning_content="let me "),
        delta(reasoning_content="see"),
        delta(content="I "),
        delta(content="look"),
        delta(tool_calls=[call(0, id="t1", type="function", function={"name": "weather", "arguments": ""})]),
        delta(tool_calls=[call(0, function={"arguments": '{"city":'})]),
        delta(tool_calls=[call(0, function={"arguments": ' "Ulm"}'})]),
        delta(tool_calls=[call(1, id="t2", type="function", function={"name": "weather", "arguments": '{"city": "Bonn"}'})]),
        delta("stop"),
        USAGE,
        DONE,
    ]

    async def work() -> None:
        async with ScriptedBackend([streams(*pieces)]) as backend, LiveFront(backend, tmp_path) as front:
            kinds: list[str] = []
            async with front.anthropic().messages.stream(model="m", max_tokens=5, messages=USER) as stream:
                async for event in stream:
                    kinds.append(event.type)
                found = await stream.get_final_message()
            assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
            assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
            assert [block.type for block in found.content] == ["thinking", "text", "tool_use", "tool_use"]
            assert [block.input for block in found.content if block.type == "tool_use"] == [{"city": "Ulm"}, {"city": "Bonn"}]
            assert found.stop_reason == "tool_use"
            assert found.usage.output_tokens == 4
            assert backend.asked[0].body["stream_options"] == {"include_usage": True}

    run(work)


def test_errors_have_the_form_of_the_protocol_before_and_inside_a_stream(tmp_path: Path) -> None:
    async def work() -> None:
        refusal = {"error": {"message": "no", "type": "x", "param": None, "code": 400}}
        scripts = [answers(refusal, 429, headers={"retry-after": "0"}), streams(delta(content="a"), break_off=True)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path) as front:
            client = front.anthropic()
            with pytest.raises(anthropic.RateLimitError) as limited:
                await client.messages.create(model="m", max_tokens=5, messages=USER)
            assert limited.value.body["error"]["type"] == "rate_limit_error"  # type: ignore[index]
            with pytest.raises(anthropic.NotFoundError):
                await client.post("/v1/messages/nothing", cast_to=object)
            with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
                await client.post("/v1/messages", cast_to=object, body={"model": "m", "messages": USER})
            with pytest.raises(anthropic.APIStatusError, match="error"):
                await streamed(client)

    run(work)


async def streamed(client: anthropic.AsyncAnthropic) -> str:
    async with client.messages.stream(model="m", max_tokens=5, messages=USER) as stream:
        return await stream.get_final_text()


def test_what_is_lost_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(completion({"content": "x"}, "stop"))]) as backend, LiveFront(backend, tmp_path) as front:
            body = {
                "model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}],
                "thinking": {"type": "enabled", "budget_tokens": 2000}, "container": "c", "a\r\nx-evil: 1,;\u00e9": 1,
            }  # fmt: skip
            answer = await front.http.post("/v1/messages", json=body)
            assert answer.headers["x-vsr-client-protocol"] == "anthropic"
            warnings = answer.headers["x-vsr-protocol-warnings"].split(",")
            assert warnings[:3] == ["info;dropped;cache_control", "info;approximated;thinking.budget_tokens", "warning;dropped;container"]
            assert warnings[3:] == ["warning;dropped;a__x-evil__1___"]
            assert "x-evil" not in answer.headers
            assert backend.asked[0].body["reasoning_effort"] == "low"
            assert front.counted("llm_translation_lossy", "anthropic") == 1

    run(work)


def test_messages_are_routed_by_their_text(tmp_path: Path) -> None:
    routing = {
        "signals": {"keywords": [{"name": "k", "operator": "OR", "keywords": ["magic"]}]},
        "decisions": [decision("d", {"operator": "AND", "conditions": [{"type": "keyword", "name": "k"}]}, [{"type": "fast_response", "configuration": {"message": "poof"}}])],
    }  # fmt: skip

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            async with front.anthropic().messages.stream(model=AUTO, max_tokens=5, messages=[{"role": "user", "content": "a magic word"}]) as stream:
                assert await stream.get_final_text() == "poof"
            assert backend.asked == []

    run(work)


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def test_images_and_documents_become_parts() -> None:
    losses = Losses()
    document = {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [{"type": "text", "text": "see"}, IMAGE]}
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [result, IMAGE, document]}]}
    tool, user = chat_body(body, losses)["messages"]
    assert tool["content"] == "see"
    assert [part["type"] for part in user["content"]] == ["image_url", "image_url", "text"]
    assert user["content"][0]["image_url"]["url"] == "data:image/png;base64,AA=="
    assert [str(loss) for loss in losses.found] == ["info;dropped;tool_result.is_error"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].source"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_what_a_chat_model_cannot_be_asked_is_refused_by_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        chat_body({"model": "m", "max_tokens": 1, "messages": USER, **change}, Losses())
    assert caught.value.param == param
