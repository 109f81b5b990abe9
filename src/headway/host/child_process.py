"""One supervised child process that cannot outlive its parent, and the end of its output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_KEPT_LINES = 20
_LONGEST_LINE = 2000


class Child:
    """A process in a group of its own, its output read line by line.

    The kernel kills it when the thread that created it ends, however that happens (Linux): create it from the main
    thread. Ctrl-C in the terminal does not reach it, so that only its parent decides when it stops.

    `variables` are added to the environment. `on_line` and, after the last line, `on_end` are called from a thread. Raises OSError for a command that cannot be run.
    """

    def __init__(
        self, name: str, command: Sequence[str], on_line: Callable[[str], None] = lambda line: None, on_end: Callable[[], None] = lambda: None,
        variables: Mapping[str, str] | None = None,
    ):  # fmt: skip
        self.name = name
        self._on_line, self._on_end = on_line, on_end
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent(os.getpid()),
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(variables or {})},
        )
        self._reader = threading.Thread(target=self._read, name=f"output of {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def last_lines(self) -> list[str]:
        """The last lines that it printed; all of them when it has ended."""
        if self.exit_code is not None:
            self._reader.join(timeout=2)
        return list(self._last)

    def stop(self, grace: float) -> None:
        """Ask it to end (SIGTERM), and kill its group when it still runs after `grace` seconds."""
        if self.exit_code is None:
            self._signal_group(signal.SIGTERM)
            deadline = time.monotonic() + grace
            while self.exit_code is None and time.monotonic() < deadline:
                time.sleep(0.02)
        self._signal_group(signal.SIGKILL)  # also what it may have left in its group
        self._process.wait()
        self._reader.join(timeout=2)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            while raw := stream.readline(_LONGEST_LINE):
                line = raw.decode("utf-8", "replace").rstrip()
                self._last.append(line)
                self._on_line(line)
        self._on_end()


def _die_with_parent(parent: int) -> Callable[[], None] | None:
    """What the child does between fork and exec, so that it is killed when the parent dies; None where that is impossible."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up before the fork: nothing may be loaded after it

    def set_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            os._exit(1)

    return set_signal
