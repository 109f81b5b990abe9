"""Notes of running servers in `$HEADWAY_CACHE/run`, by which `headway status` and `headway stop` find them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from headway.artifacts.cache_folders import headway_cache

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """`started` is the process's creation time in seconds, which tells it from a later process with the same id."""

    pid: int
    started: float
    url: str
    model: str
    port: int | None = None
    uds: str | None = None


def run_folder() -> Path:
    return headway_cache() / "run"


def this_process(url: str, model: str, port: int | None, uds: str | None) -> RunningServer:
    return RunningServer(os.getpid(), psutil.Process().create_time(), url, model, port, uds)


@contextmanager
def noted(server: RunningServer) -> Iterator[Path]:
    """The note exists while the context is open. A cache that cannot be written costs the note, not the server."""
    path = run_folder() / f"serve-{server.pid}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(server)), encoding="utf-8")
    except OSError as error:
        _log.warning(
            "no note in %s (%s): headway status and stop will not find this server", path.parent, error.strerror
        )
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def running_servers() -> list[RunningServer]:
    """Servers of this user that run now, oldest first. Notes of processes that are gone are removed."""
    found = []
    for path in sorted(run_folder().glob("serve-*.json")):
        server = _read(path)
        if server is not None and is_alive(server):
            found.append(server)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda server: server.started)


def is_alive(server: RunningServer) -> bool:
    try:
        process = psutil.Process(server.pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - server.started) < 1.0
    except psutil.Error:
        return False


def _read(path: Path) -> RunningServer | None:
    """None for a file that is no such note."""
    try:
        return RunningServer(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
