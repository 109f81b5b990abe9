"""Start the declared processes one after the other, watch them, stop them all in reverse order."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType

from headway.compose.child import Child
from headway.compose.stack import ProcessDeclaration
from headway.errors import HeadwayError

_POLL_SECONDS = 0.1
_STOP_SECONDS = 10.0
_BIGGEST_ANSWER = 1 << 16

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy: it is our own process


class ProcessEndedError(HeadwayError):
    """A process of the stack ended although nobody asked it to."""

    reason = "process_ended"


class PortInUseError(HeadwayError):
    """Something else listens where a process of the stack should."""

    reason = "port_in_use"


@dataclass(frozen=True, slots=True)
class Health:
    """What a process says about itself: `stage` is "starting" before it answers at all."""

    ready: bool
    stage: str = "starting"
    progress: float = 0.0


def ask_health(url: str) -> Health:
    """One look at a health address. Anything that is no answer counts as starting."""
    try:
        with _direct.open(url, timeout=2) as response:
            return Health(ready=response.status == 200, stage="ready", progress=1.0)
    except urllib.error.HTTPError as error:
        try:
            told = json.loads(error.read(_BIGGEST_ANSWER))
            return Health(False, str(told["stage"]), min(1.0, max(0.0, float(told["progress"]))))
        except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
            return Health(False, f"HTTP {error.code}")
    except (OSError, http.client.HTTPException):
        return Health(False)


def check_port_free(declaration: ProcessDeclaration) -> None:
    """Raise PortInUseError unless the port can be bound; otherwise a stranger's health would be taken for ours."""
    family = socket.AF_INET6 if ":" in declaration.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((declaration.host, declaration.port))
        except OSError as error:
            raise PortInUseError(
                f"{declaration.name} cannot listen on {declaration.host}:{declaration.port}: {error.strerror}",
                param="port",
                fix="Stop what listens there, or choose another port with --port.",
            ) from error


class Supervisor:
    """Owns the running processes; leaving the context stops them all, whatever happened inside.

    `on_line` gets (process name, line) from reader threads, `on_health` (process name, health) while one starts.
    """

    def __init__(
        self,
        on_line: Callable[[str, str], None] = lambda name, line: None,
        on_health: Callable[[str, Health], None] = lambda name, health: None,
    ):
        self._on_line, self._on_health = on_line, on_health
        self._children: list[Child] = []
        self.stopping = threading.Event()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for child in reversed(self._children):
            child.stop(_STOP_SECONDS)

    def start(self, declaration: ProcessDeclaration) -> bool:
        """Start one process and wait until it is ready; False when `stopping` was set before that.

        Raises PortInUseError, ProcessEndedError.
        """
        check_port_free(declaration)
        child = Child(declaration.name, declaration.command, lambda line: self._on_line(declaration.name, line))
        self._children.append(child)
        while not self.stopping.is_set():
            self._raise_if_ended(child)
            health = ask_health(declaration.health_url)
            self._on_health(declaration.name, health)
            if health.ready:
                self._raise_if_ended(child)
                return True
            self.stopping.wait(_POLL_SECONDS)
        return False

    def watch(self) -> None:
        """Return when `stopping` is set. Raises ProcessEndedError when a process ends before."""
        while not self.stopping.wait(_POLL_SECONDS):
            for child in self._children:
                self._raise_if_ended(child)

    def _raise_if_ended(self, child: Child) -> None:
        code = child.exit_code
        if code is None:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        lines = "\n".join(f"    {line}" for line in child.last_lines()) or "    (it printed nothing)"
        raise ProcessEndedError(f"{child.name} {how}. Its last lines:\n{lines}")


@contextmanager
def stop_on_signals(stopping: threading.Event) -> Iterator[None]:
    """Within the context SIGINT, SIGTERM and SIGHUP set `stopping`. For the main thread."""

    def ask(number: int, frame: FrameType | None) -> None:
        stopping.set()

    numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
