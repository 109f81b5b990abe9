"""Chat completions through the public listener, seen from outside."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.router.listener.live_front import AUTO, HELLO, LiveFront, decision, events, run
from tests.router.upstream.scripted_backend import DONE, WHOLE, ScriptedBackend, answers, chunk, streams

USAGE = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
PRICED: dict[str, Any] = {"pricing": {"prompt_per_1m": 1000.0, "completion_per_1m": 2000.0}}


def test_an_answer_passes_through_byte_for_byte_with_the_headers_of_routing(tmp_path: Path) -> None:
    raw = json.dumps(WHOLE, indent=1).encode()

    async def work() -> None:
        async with ScriptedBackend([answers(raw)]) as backend, LiveFront(backend, tmp_path) as front:
            answer = await front.chat()
            assert (answer.status_code, answer.content) == (200, raw)
            assert answer.headers["x-vsr-schema-version"] == "2"
            assert answer.headers["x-vsr-selected-model"] == "m"
            assert answer.headers["x-vsr-response-path"] == "upstream"
            assert answer.headers["x-request-id"] == backend.asked[0].headers["x-request-id"]
            assert "x-vsr-trace" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
            assert front.counted("llm_model_requests", "m") == 1
            assert front.counted("llm_model_prompt_tokens", "m") == 3

    run(work)


def test_the_official_client_reads_answers_and_streams(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [answers(), streams(chunk("he"), chunk("llo"), chunk("", "stop") + DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path) as front:
            client = front.openai()
            whole = await client.chat.completions.create(model="m", messages=HELLO)
            assert whole.choices[0].message.content == "hello"
            stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            assert "".join([part.choices[0].delta.content or "" async for part in stream]) == "hello"

    run(work)


def test_each_event_of_a_stream_arrives_before_the_next_is_made(tmp_path: Path) -> None:
    """The backend sends a second piece only when the first has reached the client."""
    seen = asyncio.Event()

    async def script(asked: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + chunk("one"))
        await asyncio.wait_for(seen.wait(), 5)
        writer.write(chunk("two", "stop") + DONE)
        writer.close()

    async def work() -> None:
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path) as front:
            body = {"model": "m", "messages": HELLO, "stream": True}
            async with front.http.stream("POST", "/v1/chat/completions", json=body, headers={"accept-encoding": "gzip"}) as answer:
                assert answer.headers["x-accel-buffering"] == "no"
                assert answer.headers["cache-control"] == "no-cache"
                assert "content-encoding" not in answer.headers
                text = ""
                async for piece in answer.aiter_text():
                    text += piece
                    seen.set()
            assert [event["choices"][0]["delta"]["content"] for event in events(text)] == ["one", "two"]
            assert text.endswith("data: [DONE]\n\n")

    run(work)


def test_a_client_that_leaves_ends_the_work_of_the_backend(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [streams(chunk("one"), stall=True)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, model=PRICED) as front:
            async with front.http.stream("POST", "/v1/chat/completions", json={"model": "m", "messages": HELLO, "stream": True}) as answer:
                assert await anext(answer.aiter_text()) == chunk("one").decode()
            while backend.gone == 0 or front.ending.load:
                await asyncio.sleep(0.005)
            entry = next(iter(front.services.spend._pending.values()))
            assert (entry.requests, entry.estimated) == (1, 1)
            assert entry.cost > 0

    run(work)


def test_usage_that_only_the_router_needs_is_asked_for_and_kept_from_the_client(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [streams(chunk("hello", "stop"), USAGE, DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, model=PRICED) as front:
            answer = await front.chat(stream=True)
            assert backend.asked[0].body["stream_options"] == {"include_usage": True}
            assert [event.get("usage") for event in events(answer.text)] == [None]
            assert front.counted("llm_model_cost", "m", "USD") == pytest.approx((3 * 1000 + 2 * 2000) / 1e6)

    run(work)


def test_usage_that_the_client_asked_for_reaches_it(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [streams(chunk("hello", "stop"), USAGE, DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, model=PRICED) as front:
            answer = await front.chat(stream=True, stream_options={"include_usage": True})
            assert [event["usage"]["total_tokens"] for event in events(answer.text) if event.get("usage")] == [5]

    run(work)


def test_the_cost_of_an_answer_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, model=PRICED) as front:
            answer = await front.chat()
            assert float(answer.headers["x-vsr-cost"]) == pytest.approx((3 * 1000 + 4 * 2000) / 1e6)
            assert answer.headers["x-vsr-cost-currency"] == "USD"

    run(work)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "body_invalid"),
        (b"[1]", 400, "body_invalid"),
        (b'{"messages":[{"role":"user","content":"x"}]}', 400, "model_required"),
        (b'{"model":7,"messages":[{"role":"user","content":"x"}]}', 400, "invalid_request"),
        (b'{"model":"m","messages":[]}', 400, "invalid_request"),
        (b'{"model":"m","messages":["x"]}', 400, "invalid_request"),
        (b'{"model":"m","stream":1,"messages":[{"role":"user","content":"x"}]}', 400, "invalid_request"),
        (b'{"model":"m","stream_options":{},"messages":[{"role":"user","content":"x"}]}', 400, "invalid_request"),
        (b'{"model":"gpt-99","messages":[{"role":"user","content":"x"}]}', 400, "model_not_available"),
        (b'{"model":"m","stream":true,"messages":[]}', 400, "invalid_request"),
        (b'{"model":"m","x":' + b"[" * 100 + b"]" * 100 + b"}", 400, "body_too_deep"),
    ],
)
def test_a_body_that_is_wrong_gets_plain_json_and_reaches_no_backend(tmp_path: Path, body: bytes, status: int, reason: str) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            answer = await front.http.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["error"]["reason"] == reason
            assert answer.headers["x-vsr-response-path"] == "error"
            assert backend.asked == []

    run(work)


def test_a_backend_that_refuses_keeps_its_status_and_gets_a_code_that_is_a_string(tmp_path: Path) -> None:
    async def work() -> None:
        refusal = {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}}
        async with ScriptedBackend([answers(refusal, 400)]) as backend, LiveFront(backend, tmp_path) as front:
            with pytest.raises(openai.BadRequestError) as caught:
                await front.openai().chat.completions.create(model="m", messages=HELLO, stream=True)
            assert caught.value.code == "400"
            assert "too long" in caught.value.message

    run(work)


def test_a_stream_that_breaks_off_ends_with_an_error_event_and_without_done(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("one"), break_off=True)]) as backend, LiveFront(backend, tmp_path) as front:
            answer = await front.chat(stream=True)
            assert answer.status_code == 200
            assert events(answer.text)[-1]["error"]["code"] == 502
            assert "[DONE]" not in answer.text
            assert front.counted("llm_request_outcomes", "error") == 1
            assert front.counted("llm_request_outcomes", "upstream") == 0

    run(work)


def test_a_routed_request_names_decision_and_recipe_and_a_trace_shows_the_signals(tmp_path: Path) -> None:
    routing = {
        "signals": {"keywords": [{"name": "greeting", "operator": "OR", "keywords": ["hi", "发票"]}]},
        "decisions": [decision("greet", {"operator": "AND", "conditions": [{"type": "keyword", "name": "greeting"}]})],
    }

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            answer = await front.chat(model=AUTO, headers={"x-vsr-debug": "true"})
            assert answer.headers["x-vsr-selected-decision"] == "greet"
            assert answer.headers["x-vsr-selected-recipe"] == "default"
            assert answer.headers["x-vsr-matched-keywords"] == "greeting"
            trace = json.loads(answer.headers["x-vsr-trace"])
            assert (trace["decision"], trace["model"], trace["signals"]["keyword:greeting"]["result"]) == ("greet", "m", "match")
            assert backend.asked[0].body["model"] == "m"
            assert front.counted("llm_decision_match", "default", "greet") == 1

    run(work)


def test_an_answer_of_a_plugin_is_streamed_when_the_client_streams(tmp_path: Path) -> None:
    routing = {"decisions": [decision("no", plugins=[{"type": "fast_response", "configuration": {"message": "not here"}}])]}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            stream = await front.openai().chat.completions.create(model=AUTO, messages=HELLO, stream=True)
            assert "".join([part.choices[0].delta.content or "" async for part in stream]) == "not here"
            answer = await front.chat(model=AUTO)
            assert answer.headers["x-vsr-response-path"] == "fast_response"
            assert answer.json()["choices"][0]["message"]["content"] == "not here"
            assert backend.asked == []

    run(work)
