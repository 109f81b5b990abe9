"""Two minutes of 64 clients that ask, leave and send nonsense: all answers right, nothing left behind, no memory gained."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.served_model import Served, serve
from tests.e2e.soak_clients import COMPLETIONS, FIXED, FIXED_TOKENS, Soak

CHECKER = os.environ.get("HEADWAY_CHECK_OPENAI")
SECONDS = 120.0
CLIENTS = 64
CACHE_BYTES = 256 << 20
GROWTH = 1.02


class MemoryLog(threading.Thread):
    """(seconds since the start, resident bytes of the process), twice a second."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self._process = psutil.Process(pid)
        self._end = threading.Event()
        self.samples: list[tuple[float, int]] = []

    def run(self) -> None:
        start = time.monotonic()
        while not self._end.wait(0.5):
            self.samples.append((time.monotonic() - start, self._process.memory_info().rss))

    def stop(self) -> None:
        self._end.set()
        self.join()

    def largest(self, since: float, until: float) -> int:
        return max(rss for at, rss in self.samples if since <= at < until)

    def usual(self, since: float, until: float) -> float:
        return statistics.median(rss for at, rss in self.samples if since <= at < until)


def alone(served: Served, prompt: str) -> str:
    body = {"prompt": prompt, "max_tokens": FIXED_TOKENS, "temperature": 0}
    return str(httpx.post(served.url + COMPLETIONS, json=body, timeout=60, trust_env=False).json()["choices"][0]["text"])


def fill_cache(served: Served) -> None:
    """Touch every block: prompts that share nothing, together half as long again as the cache."""
    blocks = int(served.get("/metrics").text.split('num_gpu_blocks="')[1].split('"')[0])
    chance = random.Random(0)
    for _ in range(int(1.5 * blocks * 16 / 1900) + 1):
        prompt = [chance.randrange(1000, 20000) for _ in range(1900)]
        httpx.post(served.url + COMPLETIONS, json={"prompt": prompt, "max_tokens": 1}, timeout=120, trust_env=False)


def until_at_rest(served: Served) -> None:
    """No request, no block in use, no connection; fails after thirty seconds."""
    deadline = time.monotonic() + 30
    while True:
        left = {name: served.metric(f"vllm:{name}") for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")}
        left["load"] = served.get("/load").json()["server_load"]
        connections = psutil.Process(served.process.pid).net_connections("tcp")
        left["connections"] = sum(c.status == psutil.CONN_ESTABLISHED for c in connections)
        if not any(left.values()):
            return
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def settled(served: Served, most: float) -> int:
    """Resident bytes when they are at most `most`, or after fifteen seconds: a server gives back what it held under load."""
    deadline = time.monotonic() + 15
    while (rss := psutil.Process(served.process.pid).memory_info().rss) > most and time.monotonic() < deadline:
        time.sleep(0.2)
    return rss


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(1200)
def test_two_minutes_of_everything(tmp_path: Path) -> None:
    flags = ("--kv-cache-memory-bytes", str(CACHE_BYTES), "--max-model-len", "2048", "--disable-uvicorn-access-log")
    with serve(tmp_path, *flags) as served:
        expected = {prompt: alone(served, prompt) for prompt in FIXED}
        assert expected["The capital of France is"].startswith(" Paris")
        fill_cache(served)
        memory = MemoryLog(served.process.pid)
        memory.start()
        soak = Soak(served.url, SECONDS, expected)
        asyncio.run(soak.run(CLIENTS))
        until_at_rest(served)
        minute, end = memory.usual(50, 70), memory.usual(SECONDS - 20, SECONDS)
        last = settled(served, GROWTH * minute)
        memory.stop()
        print(f"{sum(soak.done.values())} calls {dict(soak.done)}")
        print(f"RSS {minute / 2**20:.1f} MiB around the end of the first minute, {end / 2**20:.1f} at the end, {last / 2**20:.1f} at rest")
        print(f"largest of each minute {memory.largest(0, 60) / 2**20:.1f} and {memory.largest(60, SECONDS) / 2**20:.1f} MiB")
        assert soak.wrong == []
        assert min(soak.done.values()) >= 20, soak.done
        assert last <= GROWTH * minute, [(round(at), rss >> 20) for at, rss in memory.samples[::10]]
        log = served.log.read_text()
        assert "Traceback" not in log
        if CHECKER:
            check_contract(served, tmp_path)
            until_at_rest(served)


def check_contract(served: Served, tmp_path: Path) -> None:
    """The outside checker finds nothing wrong afterwards, either."""
    report = tmp_path / "report.json"
    command = [sys.executable, str(CHECKER), "--base-url", served.url, "--skip-tag", "feature", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(c["result"] == "pass" for c in json.loads(report.read_text())["checks"]) >= 70
