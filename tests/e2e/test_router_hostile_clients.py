"""Clients that mean no good, at a real router process."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.router_process import PUBLIC, RunningRouter, backend, started_router, two_models
from tests.router.upstream.scripted_backend import Asked, answers, chunk, streams

pytestmark = pytest.mark.e2e
INFLIGHT = 'llm_model_inflight_requests{model="small"}'


async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Fat events for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
    while True:
        writer.write(chunk("x" * 60_000))
        await writer.drain()


def sent(router: RunningRouter, body: dict[str, Any], *headers: str) -> socket.socket:
    raw = json.dumps(body).encode()
    head = ["POST /v1/chat/completions HTTP/1.1", "host: x", "content-type: application/json", f"content-length: {len(raw)}", *headers, "", ""]
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", PUBLIC + router.offset))
    found.sendall("\r\n".join(head).encode() + raw)
    return found


def test_a_client_that_reads_nothing_does_not_keep_a_backend(tmp_path: Path) -> None:
    with backend(endless) as found:
        document = two_models(found.endpoint, found.endpoint)
        document["listeners"][0]["timeout"] = "1s"
        with started_router(tmp_path, document) as router, sent(router, {"model": "small", "stream": True, "messages": [{"role": "user", "content": "x"}]}):
            router.until(lambda: router.metric(INFLIGHT) == 1)
            router.until(lambda: router.metric(INFLIGHT) == 0)


def test_the_time_that_a_caller_allows_ends_its_stream(tmp_path: Path) -> None:
    with backend(streams(chunk("a"), stall=True)) as found, started_router(tmp_path, two_models(found.endpoint, found.endpoint)) as router:
        answer = router.chat("x", headers={"x-request-timeout-ms": "500"}, stream=True)
        events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
        assert json.loads(events[-1])["error"]["reason"] == "deadline_exceeded"
        assert "choices" in json.loads(events[0])
        router.until(lambda: router.metric(INFLIGHT) == 0)


@pytest.mark.parametrize("status", [600, 999])
def test_every_request_gets_an_answer_whatever_status_a_backend_makes_up(tmp_path: Path, status: int) -> None:
    with backend(answers({"error": {"message": "x"}}, status)) as found, started_router(tmp_path, two_models(found.endpoint, found.endpoint)) as router:
        assert router.chat("x").status_code == 502


def test_an_error_body_that_is_nested_too_deep_to_be_written_keeps_its_status(tmp_path: Path) -> None:
    deep = b'{"error": {"message": "x", "d": ' + b"[" * 300 + b"]" * 300 + b"}}"
    with backend(answers(deep, 400)) as found, started_router(tmp_path, two_models(found.endpoint, found.endpoint)) as router:
        answer = router.chat("x")
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "upstream_error")


def test_a_body_of_very_many_values_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It is refused before it is parsed: 30 million lists would take gigabytes, and the router for half a minute."""
    body = b'{"model":"small","messages":[{"role":"user","content":"x"}],"a":[' + b"[]," * 30_000_000 + b"0]}"
    with backend(answers()) as found, started_router(tmp_path, two_models(found.endpoint, found.endpoint)) as router:
        answer = router.client.post(f"{router.url}/v1/chat/completions", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["reason"]) == (413, "body_too_large")
        assert router.chat("x").status_code == 200
