"""One server for a case of the list: real HTTP, real engine, and the check that it is alive and empty afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from headway.engine.async_engine import AsyncEngine
from headway.telemetry.metrics import EngineMetrics
from tests.server.api import CHAT, COMPLETIONS, frames
from tests.server.live import Live, live

USER = [{"role": "user", "content": "Hi"}]


class CaseServer:
    def __init__(self, running: Live, engine: AsyncEngine):
        self.live = running
        self.engine = engine
        self.client = httpx.Client(base_url=running.url, trust_env=False, timeout=30)

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def complete(self, **body: Any) -> httpx.Response:
        return self.post(COMPLETIONS, {"prompt": "Say", "max_tokens": 20, "temperature": 0, **body})

    def chat(self, **body: Any) -> httpx.Response:
        return self.post(CHAT, {"messages": USER, "max_tokens": 20, "temperature": 0, **body})

    def chunks(self, path: str, **body: Any) -> list[dict[str, Any]]:
        """The chunks of a stream that succeeds."""
        send = self.chat if path == CHAT else self.complete
        response = send(**body, stream=True)
        assert response.status_code == 200, response.text
        return frames(response.text)

    def metric(self, name: str, *labels: str) -> float:
        """Sum over the series of one metric whose labels hold all of `labels`."""
        lines = [line for line in self.client.get("/metrics").text.splitlines() if line.startswith((name + "{", name + " "))]
        assert lines, name
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(label in line for label in labels))

    def until_empty(self) -> None:
        """Nothing runs, waits or holds blocks; fails after ten seconds."""
        deadline = time.monotonic() + 10
        core = self.engine.loaded.core
        pool = core.scheduler.kv.pool
        while core.num_requests or pool.num_free != pool.num_blocks - 1 or self.live.state.load or self.engine._listeners:
            assert time.monotonic() < deadline, (core.num_requests, pool.num_free, self.live.state.load)
            time.sleep(0.005)

    def check_alive(self) -> None:
        self.until_empty()
        health = self.client.get("/health")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert self.complete(prompt="a", max_tokens=4, ignore_eos=True).json()["usage"]["completion_tokens"] == 4
        self.until_empty()


@contextmanager
def case_server(engine: AsyncEngine, metrics: EngineMetrics, **settings: Any) -> Iterator[CaseServer]:
    """Serve a started engine; at the end the engine's thread has ended, too."""
    with live(engine, metrics, **settings) as running:
        server = CaseServer(running, engine)
        try:
            yield server
        finally:
            server.client.close()
            engine._commands.put(None)
            engine._thread.join(20)
            assert not engine._thread.is_alive()
