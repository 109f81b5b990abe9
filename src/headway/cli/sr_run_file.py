"""The notes of a running router: one beside its configuration, by which `vllm-sr status`, `logs` and `stop` find it, and one in the cache of the
user, by which `vllm-sr instance list` finds all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from headway.artifacts.cache_folders import headway_cache

_FOLDER = "run"


@dataclass(frozen=True, slots=True)
class RunningRouter:
    """`started` is the process's creation time in seconds, which tells it from a later process with the same id. `urls` are by name: the
    listeners', management, metrics."""

    pid: int
    started: float
    config: str
    state: str
    urls: dict[str, str]

    @property
    def is_alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - self.started) < 1.0
        except psutil.Error:
            return False


@contextmanager
def noted_router(config: Path, state: Path, urls: Sequence[tuple[str, str]]) -> Iterator[Path]:
    """The note exists while the context is open. A folder that cannot be written stops the start: its state would be lost as well."""
    note = RunningRouter(os.getpid(), psutil.Process().create_time(), str(config.absolute()), str(state), dict(urls))
    path = state / _FOLDER / f"router-{note.pid}.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(note)), encoding="utf-8")
    shared = shared_folder() / path.name
    with suppress(OSError):  # a cache that cannot be written costs the list, not the router
        shared.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shared.write_text(json.dumps(asdict(note)), encoding="utf-8")
    try:
        yield path
    finally:
        for each in (path, shared):
            with suppress(OSError):
                each.unlink(missing_ok=True)


def shared_folder() -> Path:
    """Where the notes of all routers of this user lie."""
    return headway_cache() / _FOLDER


def running_routers(state: Path) -> list[RunningRouter]:
    """Those with this state folder that run now, oldest first. Notes of processes that are gone are removed."""
    return _noted(state / _FOLDER)


def all_running_routers() -> list[RunningRouter]:
    """Those of this user that run now, oldest first."""
    return _noted(shared_folder())


def _noted(folder: Path) -> list[RunningRouter]:
    found = []
    for path in sorted(folder.glob("router-*.json")):
        router = _read(path)
        if router is not None and router.is_alive:
            found.append(router)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda router: router.started)


def _read(path: Path) -> RunningRouter | None:
    """None for a file that is no such note."""
    try:
        return RunningRouter(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
