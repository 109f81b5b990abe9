"""A real `vllm-sr serve` process with a configuration of its own, and real scripted backends for it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.router.upstream.scripted_backend import Script, ScriptedBackend
from tests.shim.environments import ROOT

PUBLIC, MANAGEMENT, METRICS = 8899, 8080, 9190
PYTHON = (sys.executable, "-m", "headway.cli.sr")


@dataclass
class RunningRouter:
    """`offset` is added to every port. `log` has what it printed."""

    process: subprocess.Popen[bytes]
    config: Path
    offset: int
    log: Path
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=30))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{PUBLIC + self.offset}"

    @property
    def management(self) -> str:
        return f"http://127.0.0.1:{MANAGEMENT + self.offset}"

    def chat(self, text: str, model: str = "vllm-sr/auto", headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        return self.client.post(f"{self.url}/v1/chat/completions", json=body, headers=headers)

    def preview(self, text: str, trace: bool = False, **more: Any) -> httpx.Response:
        return self.client.post(f"{self.management}/api/v1/routing/preview", json={"text": text, **more}, params={"trace": "true"} if trace else None)

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.management + path)

    def metric(self, line: str) -> float:
        """The value of one line of /metrics, 0 when it is not there."""
        text = self.client.get(f"http://127.0.0.1:{METRICS + self.offset}/metrics").text
        found = [each for each in text.splitlines() if each.startswith(line + " ")]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def is_ready(self) -> bool:
        try:
            return self.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def free_offset() -> int:
    """One for which all three ports are free now."""
    while True:
        offset = random.randrange(1000, 15000)
        try:
            for port in (PUBLIC, MANAGEMENT, METRICS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + offset))
        except OSError:
            continue
        return offset


@contextmanager
def started_router(folder: Path, document: dict[str, Any], *flags: str, wait: bool = True, **variables: str) -> Iterator[RunningRouter]:
    """It is killed at the end if it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    config, log, offset = folder / "config.yaml", folder / "router.out", free_offset()
    config.write_text(yaml.safe_dump(document, sort_keys=False))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "VLLM_SR_PORT_OFFSET": str(offset), "OMP_NUM_THREADS": "1", **variables}
    with log.open("wb") as out:
        process = subprocess.Popen([*PYTHON, "serve", "--config", str(config), *flags], stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment)
    router = RunningRouter(process, config, offset, log)
    try:
        if wait:
            router.until(router.is_ready)
        yield router
    finally:
        process.kill()
        process.wait(20)
        router.client.close()


def command(router: RunningRouter, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`vllm-sr WORDS` beside the router's configuration, with its port offset."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "VLLM_SR_PORT_OFFSET": str(router.offset), **variables}
    return subprocess.run([*PYTHON, *words], cwd=router.config.parent, env=environment, capture_output=True, text=True, timeout=60)


@contextmanager
def backend(*scripts: Script) -> Iterator[ScriptedBackend]:
    """A scripted backend on a thread of its own."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    made = ScriptedBackend(list(scripts))

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(made.__aenter__())
        started.set()
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(made.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def two_models(small: str, large: str, keywords: Sequence[str] = ("python", "function"), **rest: Any) -> dict[str, Any]:
    """Requests with one of the words go to `large`, everything else to `small`; both are endpoints."""
    models = [{"name": name, "backend_refs": [{"name": "one", "endpoint": endpoint}]} for name, endpoint in (("small", small), ("large", large))]
    return {
        "version": "v0.3",
        "listeners": [{"name": "public", "address": "127.0.0.1", "port": PUBLIC}],
        "providers": {"defaults": {"model": "small"}, "models": models},
        "routing": {
            "signals": {"keywords": [{"name": "code", "operator": "OR", "keywords": list(keywords)}]},
            "decisions": [
                {"name": "code", "priority": 10, "rules": {"operator": "AND", "conditions": [{"type": "keyword", "name": "code"}]}, "modelRefs": [{"model": "large"}]},
            ],
        },
        **rest,
    }
