"""SqliteJournal: the entries of a LocalCache in a file that outlives the process."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from headway.router.stores.database import opened
from headway.router.stores.response_cache.entry import Entry, entry_of, facts_of, vector_bytes

_LOG = logging.getLogger(__name__)
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (id TEXT PRIMARY KEY, created REAL NOT NULL, facts BLOB NOT NULL, body BLOB NOT NULL, vector BLOB NOT NULL)"


class SqliteJournal:
    """A damaged file is put aside and a new one begun, a damaged row is skipped; both are said in the log. When writing fails the cache goes
    on in memory and `trouble` tells why."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self._database = opened(path, _SCHEMA)
        self._trouble: str | None = None

    def load(self) -> Iterable[Entry]:
        damaged = 0
        for facts, body, vector in self._database.execute("SELECT facts, body, vector FROM entries ORDER BY created").fetchall():
            try:
                yield entry_of(facts, body, vector)
            except ValueError:
                damaged += 1
        if damaged:
            _LOG.warning("%d entries of the response cache are damaged and were skipped", damaged)

    def write(self, entry: Entry) -> None:
        row = entry.id, entry.created, facts_of(entry), entry.body, vector_bytes(entry)
        self._run("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", [row])

    def erase(self, entry_ids: Collection[str]) -> None:
        self._run("DELETE FROM entries WHERE id = ?", [(entry_id,) for entry_id in entry_ids])

    def trouble(self) -> str | None:
        return self._trouble

    def close(self) -> None:
        self._database.close()

    def _run(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            with self._database:
                self._database.executemany(statement, rows)
            self._trouble = None
        except sqlite3.Error as error:
            if self._trouble is None:
                _LOG.warning("the response cache cannot be written: %s", error)
            self._trouble = str(error)
