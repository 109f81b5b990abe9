"""Two minutes of bursts against one router process: every answer right, nothing of ours fails, nothing is left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.e2e.router_burst import Burst
from tests.e2e.router_process import started_router, two_models
from tests.e2e.test_soak import GROWTH, MemoryLog
from tests.shim.environments import ROOT

SECONDS = 120.0


@contextmanager
def echo_backend(folder: Path) -> Iterator[str]:
    """`host:port` of a backend that is a process of its own."""
    file = folder / "port"
    process = subprocess.Popen([sys.executable, "-m", "tests.e2e.echo_backend", str(file)], cwd=ROOT)
    try:
        deadline = time.monotonic() + 20
        while not (file.exists() and file.read_text()):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"127.0.0.1:{file.read_text()}"
    finally:
        process.kill()
        process.wait(10)


def descriptors(process: psutil.Process, backend: str) -> int:
    """Open ones but for pooled connections to the backend."""
    pooled = sum(bool(each.raddr) and each.raddr.port == int(backend.rpartition(":")[2]) for each in process.net_connections("tcp"))
    return process.num_fds() - pooled


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(400)
def test_two_minutes_of_bursts(tmp_path: Path) -> None:
    with echo_backend(tmp_path) as backend, started_router(tmp_path / "router", two_models(backend, backend, keywords=("python",))) as router:
        process = psutil.Process(router.process.pid)
        asyncio.run(Burst(router.url).run(5))
        before = descriptors(process, backend)
        memory = MemoryLog(process.pid)
        memory.start()
        burst = Burst(router.url)
        asyncio.run(burst.run(SECONDS))
        memory.stop()
        minute, end = memory.usual(50, 70), memory.usual(SECONDS - 20, SECONDS)
        print(f"{sum(burst.done.values())} requests {dict(burst.done)}, sender at most {burst.late:.2f} s late")
        print(f"RSS {minute / 2**20:.1f} MiB around the end of the first minute, {end / 2**20:.1f} at the end")
        assert burst.wrong == []
        assert min(burst.done.values()) >= 100
        assert end <= GROWTH * minute
        router.until(lambda: descriptors(process, backend) <= before)
        assert "Traceback" not in router.log.read_text()
        assert router.stop() == 0
