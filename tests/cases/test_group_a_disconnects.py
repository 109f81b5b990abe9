"""Group A, clients that leave (A15): at every stage the generation ends, the blocks come back and the log stays quiet."""

from __future__ import annotations

import json
import logging
import random
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import CHAT, COMPLETIONS

LONG = {"max_tokens": 300, "temperature": 0.5}


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    made = ScriptedModel(scripted_tokenizer())
    made.say_bytes(b"x" * 450)
    return made


@pytest.fixture(scope="module")
def server(model: ScriptedModel) -> Iterator[CaseServer]:
    with case_server(*scripted_engine(model, num_blocks=140)) as running:
        yield running
        running.check_alive()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What the server logs about requests, whatever became of the root logger."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("uvicorn.access", "headway.server.error_handlers")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield found
    for logger, level in zip(loggers, before, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


class Client:
    """A bare connection that has sent one request."""

    def __init__(self, server: CaseServer, path: str, body: dict[str, object]):
        place = urlsplit(server.live.url)
        self._socket = socket.create_connection((place.hostname, place.port), timeout=10)
        payload = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
        self._socket.sendall(head.encode() + payload)

    def read_chunks(self, count: int) -> None:
        seen = b""
        while seen.count(b"data: ") < count:
            got = self._socket.recv(65536)
            assert got, seen
            seen += got

    def read_to_the_end(self) -> None:
        """Counting chunks would not do: tokens made while the loop was busy share one."""
        seen = b""
        while b"data: [DONE]" not in seen:
            got = self._socket.recv(65536)
            assert got, seen
            seen += got

    def leave(self) -> None:
        self._socket.close()


def until(server: CaseServer, condition: str, count: int = 1) -> None:
    core = server.engine.loaded.core
    deadline = time.monotonic() + 10
    while len(getattr(core.scheduler, condition)) < count:
        assert time.monotonic() < deadline, condition
        time.sleep(0.002)


def aborted(server: CaseServer) -> float:
    return server.metric("vllm:request_success_total", 'finished_reason="abort"')


def body_for(path: str, stream: bool, **extra: object) -> dict[str, object]:
    prompt = {"messages": [{"role": "user", "content": "x"}]} if path == CHAT else {"prompt": "x"}
    return {**prompt, **LONG, "stream": stream, **extra}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("n", [1, 3])
def test_a15_after_three_chunks_of_a_stream(server: CaseServer, model: ScriptedModel, path: str, n: int) -> None:
    before = aborted(server)
    model.before_pass = lambda plan: time.sleep(0.005)  # else the answer is ready before the client has left
    try:
        client = Client(server, path, body_for(path, True, n=n))
        client.read_chunks(3 * n)
        client.leave()
        server.until_empty()
    finally:
        model.before_pass = lambda plan: None
    assert aborted(server) == before + n


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_a15_while_it_runs_at_most_one_more_step(
    server: CaseServer, model: ScriptedModel, path: str, stream: bool, n: int, lines: list[str]
) -> None:
    """The step that computes while the client leaves ends; the next one does not have the request in it."""
    before = aborted(server)
    model.gate.clear()
    client = Client(server, path, body_for(path, stream, n=n))
    until(server, "running", n)
    passes = model.passes
    client.leave()
    listeners = server.engine._listeners
    deadline = time.monotonic() + 10
    while server.live.state.load:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert len(listeners) <= 1  # the engine has yet to hear of it
    model.gate.set()
    server.until_empty()
    assert model.passes <= passes + 1
    assert len([line for line in lines if path in line]) == 1  # one line tells of it
    assert aborted(server) == before + n


@pytest.mark.parametrize("stream", [False, True])
def test_a15_while_it_waits_for_blocks(server: CaseServer, model: ScriptedModel, stream: bool) -> None:
    """Never scheduled: the others fill the cache."""
    before = aborted(server)
    model.before_pass = lambda plan: time.sleep(0.002)
    try:
        filling = [Client(server, COMPLETIONS, {"prompt": c * 450, "max_tokens": 40, "stream": True}) for c in "ab"]
        until(server, "waiting")
        client = Client(server, COMPLETIONS, {"prompt": "c" * 450, **LONG, "stream": stream})
        until(server, "waiting", 2)
        client.leave()
        for other in filling:
            other.read_to_the_end()
            other.leave()
        server.until_empty()
    finally:
        model.before_pass = lambda plan: None
    assert aborted(server) == before + 1


@pytest.mark.parametrize("stream", [False, True])
def test_a15_during_the_prefill_of_a_long_prompt(server: CaseServer, model: ScriptedModel, stream: bool) -> None:
    """450 tokens take 8 steps of 64; the client leaves in the second."""
    before, start = aborted(server), model.passes
    model.gate.clear()
    client = Client(server, COMPLETIONS, {"prompt": "p" * 450, **LONG, "stream": stream})
    until(server, "running")
    client.leave()
    deadline = time.monotonic() + 10
    while server.live.state.load:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    model.gate.set()
    server.until_empty()
    assert model.passes - start <= 2
    assert aborted(server) == before + 1


def test_a15_two_hundred_times_at_random_moments(server: CaseServer) -> None:
    chance = random.Random(4)
    before = server.metric("vllm:request_success_total")
    for i in range(200):
        path = chance.choice([CHAT, COMPLETIONS])
        body = body_for(path, chance.random() < 0.5, n=chance.choice([1, 3]))
        if path == COMPLETIONS and i % 5 == 0:
            body["prompt"] = "y" * 450
        client = Client(server, path, body)
        time.sleep(chance.random() * 0.01)
        client.leave()
    server.until_empty()
    assert server.metric("vllm:request_success_total") > before
    assert server.live.on_loop(lambda: _pending_tasks()) == 0


def _pending_tasks() -> int:
    """Tasks of the server's loop that stream, watch or send."""
    import asyncio

    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return sum(any(word in name for word in ("_until_gone", "_send_all", "_tick", "run_asgi", "_joined")) for name in names)
