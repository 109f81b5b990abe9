"""Start the declared processes, wait until all are ready, watch them, stop them all in reverse order."""

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
from typing import Any

from headway.compose.stack import ProcessDeclaration
from headway.errors import HeadwayError
from headway.host.child_process import Child

_POLL_SECONDS = 0.1
_STOP_SECONDS = 10.0
_BIGGEST_ANSWER = 1 << 16
_LONGEST_STAGE = 100
_FINAL = ("failed", "degraded")  # states of a runtime in which every model is ready or will not be

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy: it is our own process


class ProcessEndedError(HeadwayError):
    """A process of the stack ended although nobody asked it to."""

    reason = "process_ended"


class PortInUseError(HeadwayError):
    """Something else listens where a process of the stack should."""

    reason = "port_in_use"


@dataclass(frozen=True, slots=True)
class Health:
    """What a process says about itself: `stage` is "starting" before it answers at all.

    `problem` says what will stay wrong with it although it runs: waiting longer does not help.
    """

    ready: bool
    stage: str = "starting"
    progress: float = 0.0
    problem: str | None = None


def ask_health(url: str) -> Health:
    """One look at a health address. Anything that is no answer counts as starting."""
    try:
        with _direct.open(url, timeout=2) as response:
            return Health(ready=response.status == 200, stage="ready", progress=1.0)
    except urllib.error.HTTPError as error:
        try:
            return _told(json.loads(error.read(_BIGGEST_ANSWER)))
        except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
            return Health(False, f"HTTP {error.code}")
    except (OSError, http.client.HTTPException):
        return Health(False)


def _told(body: Any) -> Health:
    """What an engine (`stage`, `progress`), a router (`phase`, `message`) or a model runtime (`status`, `reason`, `models`) says while it is not
    ready.

    Raises ValueError, LookupError or TypeError for what neither would say.
    """
    if "stage" in body:
        return Health(False, str(body["stage"]), min(1.0, max(0.0, float(body["progress"]))))
    if "phase" in body:
        stage = str(body["message"] or body["phase"])[:_LONGEST_STAGE]
        return Health(False, stage, body["ready_models"] / max(1, body["total_models"]))
    status, reason, models = str(body["status"]), body["reason"], body["models"]
    ready = sum(model["status"] == "ready" for model in models.values())
    stage = f"{status}: {reason}" if reason else status
    problem = str(reason) if status in _FINAL else None
    return Health(False, stage[:_LONGEST_STAGE], ready / max(1, len(models)), problem)


def check_ports_free(declaration: ProcessDeclaration) -> None:
    """Raise PortInUseError unless all its ports can be bound; otherwise a stranger's health would be taken for ours."""
    for host, port in ((declaration.host, declaration.port), *declaration.other_places):
        _check_free(host, port, declaration)


def _check_free(host: str, port: int, declaration: ProcessDeclaration) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortInUseError(
                f"{declaration.name} cannot listen on {host}:{port}: {error.strerror}",
                param="port",
                fix=f"Stop what listens there, or choose another port with {declaration.port_flag}.",
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

    def start(self, *declarations: ProcessDeclaration) -> bool:
        """Start processes side by side and wait until all are ready, or have a problem that will stay; False when
        `stopping` was set before that.

        Raises PortInUseError, and then nothing was started; ProcessEndedError.
        """
        for declaration in declarations:
            check_ports_free(declaration)
        waiting = [(declaration, self._launch(declaration)) for declaration in declarations]
        while waiting and not self.stopping.is_set():
            for declaration, child in list(waiting):
                self._raise_if_ended(child)
                health = ask_health(declaration.health_url)
                self._on_health(declaration.name, health)
                if health.ready or health.problem is not None:
                    self._raise_if_ended(child)
                    waiting.remove((declaration, child))
            if waiting:
                self.stopping.wait(_POLL_SECONDS)
        return not waiting

    def _launch(self, declaration: ProcessDeclaration) -> Child:
        child = Child(declaration.name, declaration.command, lambda line: self._on_line(declaration.name, line), variables=declaration.variables)
        self._children.append(child)
        return child

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
