"""`vllm-srun serve` as a process of its own, with the toy plug-ins installed for it alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
_METADATA = "Metadata-Version: 2.1\nName: toy-plugins\nVersion: 1.0\n"
_ENTRY_POINTS = """[headway.families]
toy = tests.runtime.toy_plugins:ToyFamily

[headway.accelerators]
old = tests.runtime.toy_plugins:OldGpu
tiny = tests.runtime.toy_plugins:TinyGpu
"""
_LISTENING = re.compile(r"listening on (http\S+),")


def install_toys(folder: Path) -> Path:
    """A folder for PYTHONPATH in which a distribution offers the toy plug-ins."""
    info = folder / "toy_plugins-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(_METADATA)
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    return folder


class WorkerProcess:
    def __init__(self, process: subprocess.Popen[str]):
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.until(self._url)
        transport = None
        if self.url.startswith("http+unix://"):
            transport, self.url = httpx.HTTPTransport(uds=self.url.removeprefix("http+unix://")), "http://worker"
        self.client = httpx.Client(base_url=self.url, transport=transport, trust_env=False, timeout=20)

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def until(self, condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        """What `condition` returns once it is true; fails with the log when that takes too long or the process has ended."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, self.log
            assert self.process.poll() is None or condition(), f"ended with {self.process.poll()}\n{self.log}"
            time.sleep(0.02)
        return found

    def health(self) -> dict[str, Any]:
        body: dict[str, Any] = self.client.get("/health").json()
        return body

    def until_status(self, status: str, seconds: float = 60.0) -> dict[str, Any]:
        found: dict[str, Any] = self.until(lambda: (body := self.health())["status"] == status and body, seconds)
        return found

    def embed(self, model: str, text: str = "ab") -> httpx.Response:
        return self.client.post("/v1/embeddings", json={"model": model, "input": text})

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = 30.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def _url(self) -> str | None:
        found = _LISTENING.search(self.log)
        return found[1] if found else None

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())


@contextmanager
def worker_process(
    toys: Path, *words: str, environment: dict[str, str] | None = None, before: tuple[str, ...] = ()
) -> Iterator[WorkerProcess]:
    """`before` are words in front of the command ("unshare", ...). The process is killed at the end if it still runs."""
    if "--uds" not in words and "--port" not in words:
        words = (*words, "--port", "0")
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(toys), str(ROOT / "src"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "NO_PROXY": "127.0.0.1",
        **(environment or {}),
    }
    command = [*before, sys.executable, "-m", "headway.cli.srun", "serve", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=variables, cwd=ROOT)
    try:
        worker = WorkerProcess(process)
        yield worker
        worker.client.close()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
