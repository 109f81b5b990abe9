"""`$HEADWAY_CACHE/prepared`: one file for each model and dtype, found by its key; the least recently used ones make room."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from headway.artifacts.cache_folders import headway_cache

_log = logging.getLogger(__name__)
RESERVE_BYTES: Final = 1 << 30
"""So much of the disk stays free."""
_STALE_SECONDS: Final = 3600.0


def prepared_folder() -> Path:
    return headway_cache() / "prepared"


def path_of(key: str) -> Path:
    return prepared_folder() / f"{key}.safetensors"


def mark_used(path: Path) -> None:
    """The access time orders the files by use; the other time is part of what is checked and stays."""
    with contextlib.suppress(OSError):  # a read-only cache
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


@contextlib.contextmanager
def preparing(path: Path) -> Iterator[bool]:
    """Whether this process is the one that makes `path`. Nobody waits: who is not loads without keeping anything. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except (Timeout, NotImplementedError):  # somebody else is at it, or a file system without locks
        yield False
        return
    try:
        for left in path.parent.glob(f"{path.stem}.*.part"):  # of a process that was killed; the lock is ours
            left.unlink(missing_ok=True)
        yield True
    finally:
        lock.release()


def make_room(folder: Path, needed: int, most: int) -> bool:
    """Remove the least recently used files until `needed` bytes more stay within `most` bytes, and tell whether they fit, also
    on the disk. Files in use stay readable for those who have mapped them. Raises OSError."""
    if needed > most:
        return False
    _remove_stale(folder)
    used = sorted((status.st_atime_ns, status.st_size, path) for path in folder.glob("*.safetensors") if (status := path.stat()))
    total = sum(size for _, size, _ in used)
    for _, size, path in used:
        if total + needed <= most:
            break
        _log.info("removing prepared weights that were not used for longest: %s", path.name)
        path.unlink(missing_ok=True)
        path.with_suffix(".lock").unlink(missing_ok=True)
        total -= size
    free = shutil.disk_usage(folder).free
    if free < needed + RESERVE_BYTES:
        _log.info("prepared weights of %d bytes are not kept: %d bytes are free in %s", needed, free, folder)
        return False
    return True


def _remove_stale(folder: Path) -> None:
    """Unfinished files that nobody has written to for an hour."""
    for part in folder.glob("*.part"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink()
