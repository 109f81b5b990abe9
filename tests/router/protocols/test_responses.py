"""The Responses API through the router, with OpenAI's own client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from headway.errors import HeadwayError
from headway.router.protocols.responses.request import check_request
from headway.router.protocols.responses.store import MemoryStore
from headway.router.protocols.translation import Losses
from headway.wire.responses.input import chat_messages, input_items
from tests.router.listener.live_front import LiveFront, run
from tests.router.protocols.test_messages import call, completion, delta
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, streams

FUNCTION: dict[str, Any] = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
CALL = {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def test_an_answer_with_reasoning_and_counts(tmp_path: Path) -> None:
    async def work() -> None:
        script = answers(completion({"content": "hello", "reasoning": "hm"}, "stop"))
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path) as front:
            found = await front.openai().responses.create(model="m", input="hi", instructions="be nice", max_output_tokens=7, temperature=0.5)
            assert (found.output_text, found.status, found.temperature) == ("hello", "completed", 0.5)
            assert [item.type for item in found.output] == ["reasoning", "message"]
            assert found.usage is not None
            assert (found.usage.input_tokens, found.usage.input_tokens_details.cached_tokens) == (30, 10)
            sent = backend.asked[0].body
            assert sent["messages"] == [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hi"}]
            assert (sent["max_tokens"], sent["temperature"]) == (7, 0.5)

    run(work)


def test_a_chain_carries_inputs_outputs_and_calls_but_not_instructions(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [answers(completion({"content": None, "tool_calls": [CALL]}, "tool_calls")), answers(completion({"content": "rain"}, "stop"))]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path) as front:
            client = front.openai()
            tools: list[Any] = [FUNCTION]
            first = await client.responses.create(model="m", input="hi", instructions="old", tools=tools)
            asked = first.output[0]
            assert isinstance(asked, openai.types.responses.ResponseFunctionToolCall)
            result: list[Any] = [{"type": "function_call_output", "call_id": asked.call_id, "output": "wet"}]
            second = await client.responses.create(model="m", previous_response_id=first.id, input=result, tools=tools)
            third = await client.responses.create(model="m", previous_response_id=second.id, input="and now?")
            assert third.previous_response_id == second.id
            user, spoken, tool, answer, last = backend.asked[2].body["messages"]
            assert (user["content"], last["content"]) == ("hi", "and now?")
            assert spoken["tool_calls"][0]["id"] == tool["tool_call_id"] == "t1"
            assert (tool["content"], answer) == ("wet", {"role": "assistant", "content": "rain"})

    run(work)


def test_stored_responses_are_read_listed_and_deleted_by_their_owner_alone(tmp_path: Path) -> None:
    keys = [{"name": name, "key": name} for name in ("alice", "bob")]

    async def work() -> None:
        listeners = [{"name": "public", "port": 1, "keys": keys}]
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, listeners=listeners) as front:
            alice, bob = front.openai("alice"), front.openai("bob")
            inputs: list[Any] = [{"role": "user", "content": f"line {number}"} for number in range(5)]
            made = await alice.responses.create(model="m", input=inputs)
            assert (await alice.responses.retrieve(made.id)).output_text == "hello"
            page = await alice.responses.input_items.list(made.id, limit=2, order="asc")
            assert [item.content[0].text async for item in page] == [f"line {number}" for number in range(5)]  # type: ignore[union-attr]
            for action in (bob.responses.retrieve, bob.responses.delete, bob.responses.input_items.list):
                with pytest.raises(openai.NotFoundError):
                    await action(made.id)
            with pytest.raises(openai.NotFoundError):
                await bob.responses.create(model="m", previous_response_id=made.id, input="x")
            await alice.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                await alice.responses.retrieve(made.id)
            unstored = await alice.responses.create(model="m", input="x", store=False)
            with pytest.raises(openai.NotFoundError):
                await alice.responses.retrieve(unstored.id)

    run(work)


def test_every_event_of_a_stream_is_one_that_the_client_knows(tmp_path: Path) -> None:
    pieces = [
        delta(reasoning_content="let me"),
        delta(content="I "),
        delta(content="look"),
        delta(tool_calls=[call(0, id="t1", function={"name": "weather", "arguments": '{"a":'})]),
        delta(tool_calls=[call(0, function={"arguments": "1}"})]),
        delta("tool_calls"),
        b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
        DONE,
    ]

    async def work() -> None:
        async with ScriptedBackend([streams(*pieces)]) as backend, LiveFront(backend, tmp_path) as front:
            client = front.openai()
            seen: list[Any] = []
            async with client.responses.stream(model="m", input="hi") as stream:
                async for event in stream:
                    seen.append(event)
                final = await stream.get_final_response()
            kinds = [event.type.removeprefix("response.") for event in seen]
            assert kinds[:2] == ["created", "in_progress"]
            assert kinds[-1] == "completed"
            assert kinds.count("output_item.added") == kinds.count("output_item.done") == 3
            for kind in ("reasoning_text.delta", "output_text.done", "content_part.done", "function_call_arguments.done"):
                assert kind in kinds
            assert [event.sequence_number for event in seen] == list(range(len(seen)))
            assert final.output_text == "I look"
            assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
            assert final.output[2].arguments == '{"a":1}'  # type: ignore[union-attr]
            assert final.usage is not None
            assert final.usage.total_tokens == 5
            assert (await client.responses.retrieve(final.id)).output_text == "I look"

    run(work)


def test_a_stream_that_was_cut_short_or_refused_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [streams(delta(content="a"), delta("length"), DONE), streams(delta(refusal="no"), delta("stop"), DONE), streams(delta(content="a"), break_off=True)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path) as front:
            client = front.openai()
            async with client.responses.stream(model="m", input="hi") as stream:
                last = [event async for event in stream][-1]
            assert last.type == "response.incomplete"
            async with client.responses.stream(model="m", input="hi") as stream:
                kinds = [event.type async for event in stream]
            assert "response.refusal.done" in kinds
            answer = await front.http.post("/v1/responses", json={"model": "m", "input": "hi", "stream": True})
            last_event = json.loads(answer.text.strip().splitlines()[-1].removeprefix("data: "))
            assert (last_event["type"], last_event["code"]) == ("error", "upstream_failed")

    run(work)


def test_a_store_that_is_gone_loses_no_answer(tmp_path: Path) -> None:
    api = {"global": {"services": {"response_api": {"store_backend": "redis", "redis": {"address": "127.0.0.1:1"}}}}}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **api) as front:
            client = front.openai()
            made = await client.responses.create(model="m", input="hi")
            assert made.output_text == "hello"
            with pytest.raises(openai.InternalServerError) as caught:
                await client.responses.retrieve(made.id)
            assert caught.value.status_code == 503

    run(work)


def test_the_api_can_be_switched_off(tmp_path: Path) -> None:
    async def work() -> None:
        off = {"global": {"services": {"response_api": {"enabled": False}}}}
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **off) as front:
            assert (await front.http.post("/v1/responses", json={"model": "m", "input": "x"})).status_code == 404

    run(work)


def test_the_store_in_memory_forgets_by_age_and_number() -> None:
    now = [0.0]
    store = MemoryStore(2, 10, lambda: now[0])

    async def work() -> None:
        for name in ("a", "b", "c"):
            await store.put(name, {"n": name})
        assert [await store.get(name) for name in ("a", "b", "c")] == [None, {"n": "b"}, {"n": "c"}]
        now[0] = 11
        assert await store.get("b") is None
        await store.put("d", {})
        assert list(store.records._records) == ["d"]
        assert store.records._bytes == 2

    asyncio.run(work())


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"instructions": 3}, "instructions"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
def test_requests_that_cannot_be_met_are_refused_by_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        check_request({"model": "m", "input": "x", **change})
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("items", "param"),
    [
        (3, "input"),
        (["x"], "input[0]"),
        ([{"type": "item_reference", "id": "x"}], "input[0]"),
        ([{"type": "computer_call"}], "input[0]"),
        ([{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}], "input[0].content[0]"),
        ([{"role": "robot", "content": "x"}], "input[0].role"),
    ],
)
def test_items_that_no_chat_model_reads_are_refused_by_name(items: Any, param: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        chat_messages(input_items(items), Losses())
    assert caught.value.param == param
