"""A real `headway serve` process on the model that the package registry ships."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, trust_env=False)

    def metric(self, name: str) -> float:
        """Sum over the labels of one metric."""
        lines = [line for line in self.get("/metrics").text.splitlines() if line.startswith((name + "{", name + " "))]
        assert lines, name
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def wait_for(self, condition: str, seconds: float = 30) -> None:
        """Until num_requests_running and waiting are zero (`idle`) or one runs (`busy`)."""
        deadline = time.monotonic() + seconds
        while True:
            busy = self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting")
            if (busy == 0) == (condition == "idle"):
                return
            assert time.monotonic() < deadline, f"not {condition} after {seconds} s"
            time.sleep(0.02)


@contextlib.contextmanager
def serve(folder: Path, *flags: str) -> Iterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = folder / "server.log"
    command = [sys.executable, "-m", "headway.cli.main", "serve", MODEL, "--port", str(port), *flags]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ})
    served = Served(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_ready(served)
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_ready(served: Served, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.TransportError):
            if served.get("/health").status_code == 200:
                return
        assert served.process.poll() is None, served.log.read_text()
        assert time.monotonic() < deadline, served.log.read_text()
        time.sleep(0.1)
