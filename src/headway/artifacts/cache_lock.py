"""Waiting for another process that downloads the same thing: who it is, whether it still gets on, and when to give up.

Locks are `flock` locks on files, so that one of a dead process is free at once. The files lie where huggingface_hub
puts its own, so that `hf download` and Headway wait for each other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from headway.artifacts.progress import ProgressCallback
from headway.errors import ArtifactError

_log = logging.getLogger(__name__)
IDLE_SECONDS: Final = 300.0  # a download of another process that does not grow for so long is taken to be stuck
POLL_SECONDS: Final = 0.5
_PROC_LOCKS: Final = Path("/proc/locks")


@contextlib.contextmanager
def locked(
    path: Path, what: str, grown: Callable[[], int], *, progress: ProgressCallback | None = None
) -> Iterator[None]:
    """Hold the lock file `path` while the body runs.

    While another process holds it, `grown()` (bytes it has fetched so far) tells whether it gets on and is reported to
    `progress`. Raises ArtifactError (`cache_locked`) when it has not grown for IDLE_SECONDS; OSError when `path` cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _acquire(path, what, grown, progress)
    try:
        yield
    finally:
        lock.release()


def _acquire(path: Path, what: str, grown: Callable[[], int], progress: ProgressCallback | None) -> BaseFileLock:
    lock: BaseFileLock = FileLock(path, mode=0o664)
    amount, since, announced = -1, time.monotonic(), False
    while True:
        try:
            lock.acquire(timeout=POLL_SECONDS)
            return lock
        except NotImplementedError:  # a file system without flock; soft locks name their process and host in the file
            lock = SoftFileLock(path, mode=0o664)
            continue
        except Timeout:
            pass
        holder = _holder_text(path)
        if not announced:
            _log.warning("Waiting for %s, which is downloading %s (lock %s)", holder, what, path)
            announced = True
        now = grown()
        if progress is not None:
            progress(f"waiting for {holder}: {what}", now, None)
        if now != amount:
            amount, since = now, time.monotonic()
        elif time.monotonic() - since > IDLE_SECONDS:
            raise ArtifactError(
                f"{what} is locked by {holder}, which has not fetched a byte for {IDLE_SECONDS:.0f} s (lock file {path})",
                reason="cache_locked",
                param="model",
                fix="End that process, or wait for it; the lock is free as soon as it ends.",
            )


def _holder_text(path: Path) -> str:
    pid = lock_holder(path)
    return "another process" if pid is None else f"process {pid}"


def lock_holder(path: Path) -> int | None:
    """The process that holds the flock lock on `path`, or None when the system does not tell (Linux does, in /proc/locks)."""
    try:
        status = path.stat()
        lines = _PROC_LOCKS.read_text("ascii").splitlines()
    except (OSError, ValueError):
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:  # "1: FLOCK  ADVISORY  WRITE 4242 fe:01:1234 0 EOF"
        fields = line.split()
        if len(fields) >= 6 and fields[5] == place and fields[4].isdecimal() and int(fields[4]) > 0:
            return int(fields[4])
    return None
