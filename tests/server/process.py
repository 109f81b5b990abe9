"""Starting and ending a scripted server process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class ServerProcess:
    """`note` is what it wrote into the run folder: pid, url, port ..."""

    def __init__(self, process: subprocess.Popen[str], note_file: Path, log: Path):
        self.process = process
        self.note_file = note_file
        self._log = log
        self.note: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return str(self.note["url"])

    @property
    def log(self) -> str:
        return self._log.read_text()

    def ended(self) -> int:
        return self.process.wait(60)

    def read_note(self) -> None:
        deadline = time.monotonic() + 60
        while not self.note:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            if self.note_file.exists() and (text := self.note_file.read_text()):
                self.note = json.loads(text)
            else:
                time.sleep(0.02)

    def until_logged(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.log:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)


@contextmanager
def server_process(folder: Path, mode: str, *flags: str) -> Iterator[ServerProcess]:
    """A process whose note is there; it is killed at the end if it still runs."""
    log = folder / f"{mode}.log"
    command = [sys.executable, "-m", "tests.server.scripted_process", mode, "--port", "0", *flags]
    environment = {**os.environ, "HEADWAY_CACHE": str(folder), "PYTHONPATH": f"{ROOT}/src{os.pathsep}{ROOT}"}
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True)
        try:
            yield ServerProcess(process, folder / "run" / f"serve-{process.pid}.json", log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(20)
