"""Cache hits on a real port, as the official clients and bytes see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.router.listener.live_front import AUTO, HELLO, LiveFront, decision, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, streams

PLUGIN = {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "scope": "global"}}
ROUTING = {"decisions": [decision("d", plugins=[PLUGIN])]}


def test_a_hit_is_a_stream_of_whole_events_that_the_client_reads(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [streams(chunk("he"), chunk("llo é"), chunk("", "stop") + DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            client = front.openai()
            texts = []
            for _ in range(3):
                stream = await client.chat.completions.create(model=AUTO, messages=HELLO, stream=True)
                parts = [part async for part in stream]
                texts.append("".join(part.choices[0].delta.content or "" for part in parts if part.choices))
                assert parts[0].choices[0].delta.role == "assistant" or len(texts) == 1
                assert [part.choices[0].finish_reason for part in parts if part.choices][-1] == "stop"
            assert (texts, len(backend.asked)) == (["hello é"] * 3, 1)
            answer = await front.chat(model=AUTO, stream=True)
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["x-vsr-response-path"] == "cache"
            assert answer.headers["x-vsr-cache-hit"] == "true"
            assert answer.headers["x-vsr-cache-similarity"] == "1.0000"
            assert answer.headers["x-vsr-cache-entry"]
            *events, last, end = answer.content.split(b"\n\n")
            assert (last, end) == (b"data: [DONE]", b"")
            for event in events:
                assert event.startswith(b"data: ")
                assert b"\n" not in event
                found = json.loads(event[6:])
                assert (found["object"], found["id"]) == ("chat.completion.chunk", "c1")

    run(work)


def test_whole_answers_and_streams_have_entries_of_their_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            client = front.openai()
            for _ in range(2):
                raw = await client.chat.completions.with_raw_response.create(model=AUTO, messages=HELLO)
                assert raw.parse().choices[0].message.content == "hello"
            assert raw.headers["x-vsr-cache-hit"] == "true"
            assert len(backend.asked) == 1
            await front.chat(model=AUTO, stream=True)
            assert len(backend.asked) == 2

    run(work)


@pytest.mark.parametrize("stream", [False, True])
def test_hits_in_other_protocols(tmp_path: Path, stream: bool) -> None:
    async def work() -> None:
        scripts: list[Any] = [streams(chunk("hello"), chunk("", "stop") + DONE)] if stream else [answers()]
        async with ScriptedBackend(scripts * 2) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            for _ in range(2):
                if stream:
                    async with front.anthropic().messages.stream(model=AUTO, max_tokens=9, messages=HELLO) as told:
                        text = "".join([piece async for piece in told.text_stream])
                else:
                    message = await front.anthropic().messages.create(model=AUTO, max_tokens=9, messages=HELLO)
                    text = getattr(message.content[0], "text", "")
                assert text == "hello"
            assert len(backend.asked) == 1

    run(work)


def test_what_a_client_says_of_caching_reaches_the_plugin_and_hits_cost_nothing(tmp_path: Path) -> None:
    controls = {"request_controls": {"enabled": True, "allowed": ["bypass"]}}
    plugin = {"type": "response_cache", "configuration": {**PLUGIN["configuration"], **controls}}  # type: ignore[dict-item]
    priced = {"pricing": {"prompt_per_1m": 1000.0, "completion_per_1m": 2000.0}}

    async def work() -> None:
        routing = {"decisions": [decision("d", plugins=[plugin])]}
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing, model=priced) as front:
            for said, path in (("", "upstream"), ("", "cache"), ("bypass", "upstream"), ("bypass", "upstream")):
                answer = await front.chat(model=AUTO, headers={"x-vsr-cache-control": said})
                assert answer.headers["x-vsr-response-path"] == path
            assert len(backend.asked) == 3
            assert front.counted("llm_model_prompt_tokens", "m") == 9

    run(work)
