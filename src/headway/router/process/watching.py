"""Watching: a file, seen whole each time that its content changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from watchfiles import awatch

_log = logging.getLogger(__name__)
_LOOK_MS = 1000  # also without a notice: some file systems give none
_QUIET_SECONDS = 0.3
_NEW_FILE_QUIET_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """`beside`: the content is as before, a file that it refers to is not."""

    content: bytes
    beside: bool = False


async def contents(path: Path, known: bytes, others: Callable[[], Iterable[Path]], stop: asyncio.Event) -> AsyncIterator[Change]:
    """Each new content of `path` after `known`, and each change of the `others` that it refers to.

    A file that came in the place of another (rename, symlink) is complete almost at once, and counts even when the next one follows immediately.
    One that is written in place is looked at when it has been still for a while, so that its half is not taken for the whole. A file that is missing
    for a moment is waited for.
    """
    inode = _identity(path)
    side = _stamps(others())
    while not stop.is_set():
        folders = {folder for each in (path, path.resolve(), *others()) if (folder := each.parent).is_dir()}
        async for _ in awatch(*folders, stop_event=stop, debounce=20, step=10, rust_timeout=_LOOK_MS, yield_on_timeout=True, recursive=False):
            found, now = _read(path), _identity(path)
            if found is not None and found != known:
                await asyncio.sleep(_QUIET_SECONDS if now == inode else _NEW_FILE_QUIET_SECONDS)
                if _identity(path) == now and _read(path) != found:
                    continue  # it is being written
                known, inode = found, now
                yield Change(found)
                side = _stamps(others())
                break  # what it refers to, or where its link leads, may be elsewhere now
            inode = now if found is not None else inode
            if side != (changed := _stamps(others())):
                side = changed
                yield Change(known, beside=True)
                break


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError as error:
        _log.debug("%s cannot be read now: %s", path.name, error.strerror)
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int, int]]:
    found = {}
    for path in paths:
        try:
            facts = path.stat()
        except OSError:
            continue
        found[path] = facts.st_ino, facts.st_mtime_ns, facts.st_size
    return found
