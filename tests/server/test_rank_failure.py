"""Over HTTP: streams that are open when a rank fails, /health and /metrics meanwhile, and the server afterwards."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headway.cli.server_client import ServerClient
from headway.cli.status import server_status, status_lines
from headway.cli.wait import readiness
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.server.swap.model_swap import ModelSwap
from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.engine.recovery.scripted_ranks import WHY, RankWorld
from tests.server.api import CHAT, COMPLETIONS

FAILED = f"rank 1 on there failed: {WHY}. The log of that rank tells more."


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> RankWorld:
    return RankWorld(monkeypatch)


@pytest.fixture
def server(world: RankWorld) -> Iterator[CaseServer]:
    world.start()
    try:
        with case_server(world.engine, world.metrics, server_dev_mode=True) as running:
            yield running
    finally:
        world.go.set()
        world.may_load.set()


class Reader(threading.Thread):
    """Reads one answer to its end; `begun` once there is a part of it."""

    def __init__(self, server: CaseServer, path: str, stream: bool):
        super().__init__(daemon=True)
        self.url, self.path, self.stream = server.live.url + path, path, stream
        self.begun = threading.Event()
        self.status = 0
        self.frames: list[Any] = []
        self.headers: httpx.Headers | None = None
        self.start()

    def run(self) -> None:
        ask = {"messages": [{"role": "user", "content": "Hi"}]} if self.path == CHAT else {"prompt": "Say"}
        body = {**ask, "max_tokens": 200, "temperature": 0, "stream": self.stream}
        with httpx.Client(trust_env=False, timeout=60) as client, client.stream("POST", self.url, json=body) as response:
            self.status, self.headers = response.status_code, response.headers
            if not self.stream:
                self.frames = [json.loads(response.read())]
                return
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.frames.append(line[6:] if line == "data: [DONE]" else json.loads(line[6:]))
                    self.begun.set()


def test_every_open_request_ends_with_an_error_and_the_server_comes_back(server: CaseServer, world: RankWorld) -> None:
    assert server.client.get("/health").json() == {
        "status": "ok",
        "ranks": [{"rank": rank, "host": "there", "pid": 4000 + rank, "state": "up", "silent_seconds": 0.25} for rank in (0, 1)],
    }
    errors = server.metric("vllm:request_success_total", 'finished_reason="error"')
    world.model.gate.clear()
    streams = [Reader(server, path, True) for path in (COMPLETIONS, CHAT) * 4]
    whole = [Reader(server, path, False) for path in (COMPLETIONS, CHAT)]
    world.until(lambda: world.engine.status.requests == 10)
    world.stop_at = world.model.passes + 8
    world.model.gate.set()
    for stream in streams:
        assert stream.begun.wait(60)
    world.may_load.clear()
    world.fail_in_a_pass()
    for reader in (*streams, *whole):
        reader.join(60)
        assert not reader.is_alive()
    for reader in streams:
        *parts, failure, done = reader.frames
        assert (reader.status, done) == (200, "[DONE]")
        assert all("choices" in part for part in parts)
        assert failure == {"error": {"message": FAILED, "type": "ServiceUnavailableError", "param": "rank 1", "code": 503, "reason": "rank_failed"}}
    for reader in whole:
        assert (reader.status, reader.frames[0]["error"]["message"]) == (503, FAILED)
        assert reader.headers is not None
        assert reader.headers["retry-after"] == "2"
    _is_told(server, world)
    world.may_load.set()
    world.until_stage("ready")
    assert server.complete(max_tokens=7).json()["usage"]["completion_tokens"] == 7
    server.until_empty()
    world.check_freed(0)
    assert server.metric("vllm:request_success_total", 'finished_reason="error"') == errors + 10
    assert server.metric("headway:engine_restarts_total", 'reason="rank_failed"') == 1
    assert server.metric("headway:rank_up") == 2
    assert server.metric("vllm:num_requests_running") == server.metric("vllm:kv_cache_usage_perc") == 0


def _is_told(server: CaseServer, world: RankWorld) -> None:
    """While the model loads again."""
    world.until(lambda: world.engine.status.progress == 0.5)
    health = server.client.get("/health")
    message = f"The engine starts again, since rank 1 on there failed: {WHY}. Attempt 1 of 5 is loading."
    assert (health.status_code, health.headers["retry-after"]) == (503, "1")
    assert health.json() == {
        "status": "restarting", "reason": "rank_failed", "message": message, "rank": 1, "host": "there", "why": WHY,
        "attempt": 1, "attempts": 5, "next_attempt_seconds": 0.0, "progress": 0.5,
    }  # fmt: skip
    for refused in (server.complete(), server.chat(stream=True), server.post("/swap_model", {"model": "another"}), server.post("/pause", {})):
        assert (refused.status_code, refused.json()["error"]["reason"], refused.headers["retry-after"]) == (503, "restarting", "2")
        assert refused.json()["error"]["message"] == message
    assert server.metric("headway:rank_up") == 0
    found = readiness(ServerClient(server.live.url))
    assert (found.state, found.reason, found.is_final) == ("restarting", message, False)


def test_the_status_command_shows_each_rank(server: CaseServer, world: RankWorld) -> None:
    lines = status_lines(server_status(server.live.url))
    assert lines[-2:] == [f"  rank {rank} on there, pid {4000 + rank}: up, heard 0.25 s ago" for rank in (0, 1)]


def test_an_engine_that_starts_again_ends_when_another_model_takes_its_place(server: CaseServer, world: RankWorld) -> None:
    second, _ = scripted_engine(ScriptedModel(scripted_tokenizer()))

    async def start(config: EngineConfig) -> AsyncEngine:
        world.may_load.clear()
        world.ranks.fail()
        while world.engine.status.progress != 0.5:
            await asyncio.sleep(0.002)
        return second

    server.live.state.swap = ModelSwap(server.live.state, start, lambda engine: None)
    assert server.post("/swap_model", {"model": "second"}).json()["model"] == "second"
    assert server.complete(max_tokens=1).status_code == 200
    assert server.client.get("/swap_model").json()["retiring"] == 1
    world.may_load.set()
    world.until(lambda: server.client.get("/swap_model").json()["retiring"] == 0)
    assert world.engine.status.stage == "stopped"
    second._commands.put(None)
    second._thread.join(60)


def test_when_all_attempts_fail_health_tells_the_causes(server: CaseServer, world: RankWorld) -> None:
    world.next_loads = [RuntimeError("nothing that anybody should see")] * 5
    world.ranks.fail()
    world.until_stage("dead")
    health = server.client.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "dead")
    assert health.json()["reason"].startswith(f"the engine failed 6 times within 600 s: 1. rank 1 on there failed: {WHY}; 2. RuntimeError while")
    assert "nothing that" not in health.text
    assert server.complete().json()["error"]["reason"] == "engine_dead"
    assert server.metric("headway:engine_restarts_total", 'reason="internal_error"') == 4
