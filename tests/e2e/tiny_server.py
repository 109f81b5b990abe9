"""A real `headway serve` process on the tiny model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.served_model import Served, wait_ready
from tests.e2e.tiny_model import tiny_model
from tests.shim.environments import ROOT


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def tiny_server(folder: Path, *flags: str, port: int = 0, **variables: str) -> Iterator[Served]:
    """Its cache is `folder`, its port a free one unless given; it is killed at the end if it still runs."""
    port, log = port or free_port(), folder / "server.log"
    command = [sys.executable, "-m", "headway.cli.main", "serve", str(tiny_model(folder)), "--port", str(port), "--max-model-len", "256"]
    environment = {**os.environ, "HEADWAY_CACHE": str(folder), "PYTHONPATH": str(ROOT / "src"), **variables}
    with log.open("wb") as out:
        process = subprocess.Popen([*command, *flags], stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment)
    served = Served(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_ready(served)
        yield served
    finally:
        process.kill()
        process.wait(20)


def ask(served: Served, prompt: str = "hello", **headers: str) -> str:
    """One completion of four tokens; returns its id."""
    body = {"prompt": prompt, "max_tokens": 4, "ignore_eos": True, "temperature": 0.5}
    answer = httpx.post(served.url + "/v1/completions", json=body, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def end(served: Served) -> None:
    """SIGTERM; the exit code is 0."""
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(30) == 0, served.log.read_text()
