"""E17: a stream reaches the client as it is produced: the backend makes each chunk only after the client has read the one before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.router_case import decision, document
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.upstream.scripted_backend import DONE, Asked, ScriptedBackend, chunk

CHUNKS = 20
MOST_BUFFERED = 16 << 20
EVENT = chunk("x" * 120)  # about 250 bytes
BIG = chunk("y" * 60_000)
PROMPT = {"type": "system_prompt", "configuration": {"enabled": True, "system_prompt": "Be brief."}}
REPLAY: dict[str, Any] = {"type": "router_replay", "configuration": {"enabled": True, "capture_response_body": True}}


class Stepwise:
    """Writes one event for each `step`, and counts what it could hand over to a reader that does not read."""

    def __init__(self) -> None:
        self.step = threading.Semaphore(0)
        self.handed_over = 0
        self.ended = threading.Event()

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        if asked.body["messages"][-1]["content"] == "flood":
            try:
                while True:
                    await self._send(writer, BIG)
                    self.handed_over += len(BIG)
            finally:
                self.ended.set()
        for _ in range(CHUNKS):
            await asyncio.to_thread(self.step.acquire)
            await self._send(writer, EVENT)
        await self._send(writer, b": still here\n\n")
        await self._send(writer, chunk(finish="stop") + DONE)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()


@pytest.fixture(scope="module")
def source() -> Stepwise:
    return Stepwise()


@pytest.fixture(scope="module")
def behind(source: Stepwise) -> Iterator[ScriptedBackend]:
    with backend(source) as found:
        yield found


@pytest.fixture(scope="module")
def router(behind: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """`case/plugins` has plugins that look at the request and at each chunk of the answer."""
    recipes = [{"name": "plugins", "routing": {"decisions": [decision("all", plugins=[PROMPT, REPLAY])]}}]
    whole = document({"m": behind.endpoint}, {}, recipes=recipes, entrypoints=[{"model_names": ["case/plugins"], "recipe": "plugins"}])
    with started_router(tmp_path_factory.mktemp("streams"), whole) as found:
        yield found


def body(path: str, model: str, text: str = "hi") -> dict[str, Any]:
    more = {"max_tokens": 100} if path == "/v1/messages" else {}
    asked = {"input": text} if path == "/v1/responses" else {"messages": [{"role": "user", "content": text}]}
    return {"model": model, "stream": True, **asked, **more}


@pytest.mark.parametrize("model", ["m", "case/plugins"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_e17_each_chunk_arrives_before_the_next_is_made(router: RunningRouter, source: Stepwise, path: str, model: str) -> None:
    headers = {"accept-encoding": "gzip, deflate, br, zstd"}
    source.step.release()  # an answer begins with its first event: until then another backend could take over
    with router.client.stream("POST", router.url + path, json=body(path, model), headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"
        assert "no-cache" in answer.headers["cache-control"]
        assert "content-encoding" not in answer.headers
        found = 0
        for line in answer.iter_lines():
            if "x" * 120 in line and "delta" in line:
                found += 1
                if found < CHUNKS:
                    source.step.release()
    assert found == CHUNKS


def test_e17_a_reader_that_does_not_read_holds_the_backend_and_not_the_memory(router: RunningRouter, source: Stepwise) -> None:
    before = router.metric("process_resident_memory_bytes")
    with router.client.stream("POST", f"{router.url}/v1/chat/completions", json=body("", "m", "flood")) as answer:
        assert answer.status_code == 200
        handed = -1
        while handed != source.handed_over:  # until the backend stands still
            handed = source.handed_over
            threading.Event().wait(0.3)
        assert handed < MOST_BUFFERED
        assert router.metric("process_resident_memory_bytes") - before < MOST_BUFFERED
    assert source.ended.wait(10)
