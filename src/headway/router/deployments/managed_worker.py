"""ManagedWorker: a worker process that the router starts, watches, starts again and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.errors import ConfigError
from headway.host.child_process import Child
from headway.router.deployments.runtime_client import RuntimeClient
from headway.router.deployments.socket_folder import clear_socket, write_private
from headway.router.deployments.tempo import Tempo
from headway.router.deployments.worker import Worker
from headway.router.deployments.worker_state import WorkerState

_log = logging.getLogger(__name__)
NOT_READY = "model runtime is not ready"


@dataclass(frozen=True, slots=True)
class Launch:
    """What is run: `models` is the content of `models_file`, which the command names, as it does `socket`."""

    command: tuple[str, ...]
    socket: Path
    models_file: Path
    models: bytes


class ManagedWorker(Worker):
    """`label` is what log lines call it. `on_restart` is called before each start but the first. Start it from the main thread: the process is
    killed with the thread that started it."""

    managed = True

    def __init__(
        self, id: str, client: RuntimeClient, served_name: str, device: str, tempo: Tempo, launch: Launch, label: str,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(id, client, served_name, device, tempo)
        self._launch, self._label, self._on_restart = launch, label, on_restart
        self._child: Child | None = None
        self._failure: str | None = None
        self._failed_loads = 0
        self._quick_exits: deque[float] = deque(maxlen=tempo.quick_exits)
        self._was_ready = False
        self._owns_files = False  # the place of the socket was free, or held what is left of an earlier worker

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None and self._child.exit_code is None else None

    async def stop(self) -> None:
        """SIGTERM to the group, SIGKILL after the grace."""
        await super().stop()
        await self._end_process()
        if self._owns_files:
            self._launch.socket.unlink(missing_ok=True)
            self._launch.models_file.unlink(missing_ok=True)

    async def _live(self) -> None:
        backoff = self.tempo.first_backoff
        while True:
            began = time.monotonic()
            if self._spawn():
                reason = await self._watch()
                await self._end_process()
            else:
                reason = self._failure or ""
            ran = time.monotonic() - began
            self._set(WorkerState("backoff", reason))
            if ran > self.tempo.good_run:
                backoff = self.tempo.first_backoff
            _log.warning("model runtime process %s stopped: %s; it starts again in %g s", self._label, reason, backoff)
            await asyncio.sleep(backoff)
            backoff = min(self.tempo.longest_backoff, backoff * 2)
            self.restarts += 1
            self._on_restart()
            self._set(WorkerState("restarting", reason))

    def _spawn(self) -> bool:
        """Whether a process runs now."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever would look
                loop.call_soon_threadsafe(self._look.set)

        try:
            clear_socket(self._launch.socket)
            self._owns_files = True
            write_private(self._launch.models_file, self._launch.models)
            self._child = Child(self._label, self._launch.command, self._relog, ended)
        except OSError as error:
            self._fail(f"{self._launch.command[0]} cannot be run: {error.strerror}")
            return False
        except ConfigError as error:
            self._fail(error.message)
            return False
        _log.info("model runtime process %s runs as pid %d", self._label, self._child.pid)
        self._set(WorkerState("starting"))
        return True

    async def _watch(self) -> str:
        """Until the process has ended, or all its models have failed. Returns why."""
        assert self._child is not None
        began = time.monotonic()
        while self._child.exit_code is None:
            await self.probe()
            if self.state.ready:
                self._was_ready, self._failure, self._failed_loads = True, None, 0
            elif self.state.state == "failed":
                return self._load_failed(self.state.reason)
            elif self.state.state == "unreachable" and not self._was_ready:
                self._set(WorkerState("starting"))
            await self._rest()
        if not self._was_ready:
            self._exited(began)
        return how_it_ended(self._child)

    def _load_failed(self, reason: str) -> str:
        """The worker has given up on its model."""
        self._failed_loads += 1
        what = f"model {self.served_name} failed to load: {reason}"
        if self._failed_loads >= self.tempo.failed_loads:
            self._fail(f"{what.rstrip('.')} (every model failed to load {self._failed_loads} times in a row)")
        return f"{NOT_READY}: {what}"

    def _exited(self, began: float) -> None:
        assert self._child is not None
        now = time.monotonic()
        self._quick_exits.append(began)
        if len(self._quick_exits) == self.tempo.quick_exits and now - self._quick_exits[0] <= self.tempo.quick_window:
            self._fail(f"its process ended {len(self._quick_exits)} times before the model was ready: {how_it_ended(self._child)}")

    def _fail(self, reason: str) -> None:
        self._failure = f"{NOT_READY}: {reason}"
        self.on_change()

    async def _end_process(self) -> None:
        child = self._child
        if child is None:
            return
        was_asked = child.exit_code is None
        await asyncio.to_thread(child.stop, self.tempo.grace)  # when this is cancelled, `stop` does it once more
        self._child = None
        if was_asked and child.exit_code == -signal.SIGKILL:
            _log.warning("runtime_process_killed: %s did not end within %g s of SIGTERM", self._label, self.tempo.grace)

    def _relog(self, line: str) -> None:
        _log.info("runtime_log %s: %s", self._label, line)


def how_it_ended(child: Child) -> str:
    """With the last line that it printed."""
    code = child.exit_code
    if code is None:
        return "it was stopped"
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    lines: Sequence[str] = child.last_lines()
    return f"{how}: {lines[-1]}" if lines else how
