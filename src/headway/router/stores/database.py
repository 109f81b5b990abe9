"""Opening SQLite files that the router owns."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from pathlib import Path

_LOG = logging.getLogger(__name__)


def opened(path: Path, schema: str) -> sqlite3.Connection:
    """A connection to the file (0600) with the tables of `schema`. A file that SQLite cannot read is renamed to `*.damaged-<time>` and a new
    one begun: a cache or a log is never worth a router that does not start. Any thread may use it, one at a time."""
    try:
        return _connected(path, schema)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # locked, or a folder that cannot be written: nothing is wrong with the file
        aside = path.with_name(f"{path.name}.damaged-{int(time.time())}")
        _LOG.warning("%s is damaged (%s); it was renamed to %s and a new one begun", path.name, error, aside.name)
        path.rename(aside)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        return _connected(path, schema)


def _connected(path: Path, schema: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    database = sqlite3.connect(path, timeout=5, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute("PRAGMA foreign_keys=ON")
        if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its contents are inconsistent")
        database.executescript(schema)
    except BaseException:
        database.close()
        raise
    return database
