"""LocalProcess: a rank on this host, as a child of this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Final

_PATIENCE: Final = 3.0  # seconds between being told to end and being killed


class LocalProcess:
    """Started at once. It ends when this process does, however that happens: its standard input closes."""

    def __init__(self, rank: int, host: str, port: int, key: bytes, threads: int, timeout_seconds: float):
        self.rank = rank
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headway.engine.distributed.worker"], stdin=subprocess.PIPE, env=environment,
        )  # fmt: skip
        meeting = {"rank": rank, "host": host, "port": port, "key": key.hex(), "timeout_seconds": timeout_seconds}
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended already, which whoever waits for it sees
            self._process.stdin.write(json.dumps(meeting).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def how_it_ended(self, within_seconds: float = 0.0) -> str | None:
        """None while it runs."""
        try:
            code = self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return None
        return f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with exit status {code}"

    def end(self, *, at_once: bool) -> None:
        """Returns when it is gone."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if at_once:
            self._process.kill()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
