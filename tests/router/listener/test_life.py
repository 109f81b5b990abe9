"""A listener under slow clients, at its end, and across a reload."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.router.listener.live_front import HELLO, LiveFront, events, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, never, streams

BODY = json.dumps({"model": "m", "messages": HELLO, "stream": True}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY


def test_a_client_that_does_not_read_stops_its_backend(tmp_path: Path) -> None:
    """What the backend could write is what sockets and bounded buffers hold, however much there is to say."""
    written = 0
    piece = chunk("x" * 10_000)

    async def script(asked: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(piece)
            await writer.drain()
            written += len(piece)

    async def work() -> None:
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path) as front:
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port, limit=1024)
            writer.write(REQUEST)
            before = -1
            while written == 0 or written != before:
                before = written
                await asyncio.sleep(0.3)
            assert written < 32 * 1024 * 1024
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
            while backend.gone == 0:
                await asyncio.sleep(0.01)

    run(work, 60)


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            generation = front.generations.current
            front.generations.swap(replace(generation, number=2, front=replace(generation.front, body_seconds=0.05)))
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(REQUEST[:-5])
            assert (await reader.readline()).split()[1] == b"408"
            writer.close()

    run(work)


def test_at_the_end_streams_get_an_error_event_and_new_requests_a_refusal(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("one"), stall=True)]) as backend, LiveFront(backend, tmp_path) as front:
            async with front.http.stream("POST", "/v1/chat/completions", json={"model": "m", "messages": HELLO, "stream": True}) as answer:
                parts = answer.aiter_text()
                text = await anext(parts)
                front.ending.refuse_new()
                refused = await front.chat()
                assert (refused.status_code, refused.json()["error"]["reason"]) == (503, "shutting_down")
                assert (await front.http.get("/ready")).status_code == 503
                assert (await front.http.get("/health")).status_code == 200
                front.ending.end_all()
                text += "".join([part async for part in parts])
            assert [event.get("error", {}).get("reason") for event in events(text)] == [None, "shutting_down"]
            assert front.ending.load == 0

    run(work)


def test_a_request_keeps_the_configuration_that_it_began_with(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def script(asked: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + chunk("one"))
        await go_on.wait()
        writer.write(chunk("two", "stop") + DONE)
        writer.close()

    async def work() -> None:
        async with ScriptedBackend([script, answers()]) as backend, LiveFront(backend, tmp_path) as front:
            async with front.http.stream("POST", "/v1/chat/completions", json={"model": "m", "messages": HELLO, "stream": True}) as answer:
                parts = answer.aiter_text()
                text = await anext(parts)
                front.generations.swap(front.generation(2))
                assert (await front.chat()).headers["x-vsr-config-version"] == "2"
                assert front.generations.retired == 1
                go_on.set()
                text += "".join([part async for part in parts])
            assert answer.headers["x-vsr-config-version"] == "1"
            assert text.endswith("data: [DONE]\n\n")
            while front.generations.retired:
                await asyncio.sleep(0.005)

    run(work)


def test_a_client_that_leaves_before_its_answer_is_counted_as_gone(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as backend, LiveFront(backend, tmp_path) as front:
            _, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(REQUEST)
            while not backend.asked:
                await asyncio.sleep(0.005)
            writer.close()
            while backend.gone == 0 or front.ending.load:
                await asyncio.sleep(0.005)
            assert front.counted("llm_request_outcomes", "client_left") == 1

    run(work)


def test_before_the_first_configuration_the_listener_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            await front.generations.close()
            early = await front.chat()
            assert (early.status_code, early.json()["error"]["reason"], early.headers["retry-after"]) == (503, "not_ready", "2")
            assert (await front.http.get("/ready")).json() == {"status": "starting", "ready": False}

    run(work)


def test_pipelined_requests_are_answered_in_order_and_all_end_with_the_connection(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("one"), stall=True)]) as backend, LiveFront(backend, tmp_path) as front:
            _, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(REQUEST * 2)
            while not backend.asked:
                await asyncio.sleep(0.005)
            writer.transport.abort()
            while backend.gone == 0 or front.ending.load:
                await asyncio.sleep(0.005)
            assert len(backend.asked) == 1

    run(work)
