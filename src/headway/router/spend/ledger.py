"""SpendLedger: who spent what on which day, in memory for budgets and in SQLite for ever."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from headway.router.listener.usage import Usage
from headway.router.stores.database import opened

_log = logging.getLogger(__name__)
FILE_NAME = "spend.sqlite3"
_FLUSH_SECONDS = 1.0
_TABLE = """
CREATE TABLE IF NOT EXISTS spend (
  day TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL, currency TEXT NOT NULL,
  requests INTEGER NOT NULL, estimated INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL NOT NULL,
  PRIMARY KEY (day, key, model, currency)
) WITHOUT ROWID;"""
_ADD = """
INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, key, model, currency) DO UPDATE SET
  requests = requests + excluded.requests, estimated = estimated + excluded.estimated, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
  completion_tokens = completion_tokens + excluded.completion_tokens, cost = cost + excluded.cost"""


@dataclass(slots=True)
class Spent:
    """Sums of one day, key, model and currency. `estimated` of the `requests` ended before their backend had counted tokens."""

    day: str
    key: str
    model: str
    currency: str
    requests: int = 0
    estimated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class SpendLedger:
    """Any thread may call. What was added is on disk within about a second; a process that is killed loses that second."""

    def __init__(self, folder: Path, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> None:
        self._path = folder / FILE_NAME
        self._today = today
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, str, str, str], Spent] = {}
        self._by_day: dict[tuple[str, str], dict[str, float]] | None = None  # (key, currency) -> day -> cost; None = not read yet
        self._writer: threading.Thread | None = None
        self._wake = threading.Event()
        self._database: sqlite3.Connection | None = None  # of whoever flushes
        self._flushing = threading.Lock()
        self._complained = False

    def add(self, key: str, model: str, usage: Usage, cost: float, currency: str) -> None:
        day = self._today().isoformat()
        with self._lock:
            place = day, key, model, currency
            entry = self._pending.get(place)
            if entry is None:
                entry = self._pending[place] = Spent(*place)
            entry.requests += 1
            entry.estimated += usage.estimated
            entry.prompt_tokens += usage.prompt_tokens
            entry.completion_tokens += usage.completion_tokens
            entry.cost += cost
            if cost:  # read what is on disk before this is there, too: it must not count twice
                days = self._known().setdefault((key, currency), {})
                days[day] = days.get(day, 0.0) + cost
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_for_ever, name="spend", daemon=True)
                self._writer.start()

    def spent(self, key: str, currency: str, since: date) -> float:
        """The cost of `key` from the day `since` on."""
        first = since.isoformat()
        with self._lock:
            return sum(cost for day, cost in self._known().get((key, currency), {}).items() if day >= first)

    def flush(self) -> None:
        """Write what is pending. A file that cannot be written is logged once; nothing is lost while the process lives."""
        with self._flushing:
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            if self._database is None:
                self._database = opened(self._path, _TABLE)
            with self._database:
                self._database.executemany(_ADD, [_row(entry) for entry in pending.values()])
        except (sqlite3.Error, OSError) as error:
            with self._lock:
                for place, entry in pending.items():
                    self._pending[place] = _sum(entry, self._pending.get(place))
            if not self._complained:
                self._complained = True
                _log.error("spend cannot be written to %s: %s", self._path.name, error)

    def close(self) -> None:
        writer, self._writer = self._writer, None
        self._wake.set()
        if writer is not None:
            writer.join(10)
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _write_for_ever(self) -> None:
        while not self._wake.wait(_FLUSH_SECONDS):
            self.flush()

    def _known(self) -> dict[tuple[str, str], dict[str, float]]:
        if self._by_day is None:
            self._by_day = {}
            try:
                found = read_spend(self._path)
            except sqlite3.Error as error:
                _log.error("%s cannot be read, budgets count from now on: %s", self._path.name, error)
                found = ()
            for entry in found:
                days = self._by_day.setdefault((entry.key, entry.currency), {})
                days[entry.day] = days.get(entry.day, 0.0) + entry.cost
        return self._by_day


def read_spend(path: Path, since: date = date.min, until: date = date.max) -> Sequence[Spent]:
    """What is on disk, by day, key and model; nothing when there is no file. Raises sqlite3.Error for a file that is no ledger."""
    if not path.exists():
        return ()
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'spend'").fetchone():
            return ()
        rows = database.execute("SELECT * FROM spend WHERE day BETWEEN ? AND ? ORDER BY day, key, model, currency", (since.isoformat(), until.isoformat()))
        return [Spent(*row) for row in rows]


def _row(entry: Spent) -> tuple[object, ...]:
    return (
        entry.day, entry.key, entry.model, entry.currency, entry.requests, entry.estimated, entry.prompt_tokens, entry.completion_tokens, entry.cost,
    )  # fmt: skip


def _sum(one: Spent, other: Spent | None) -> Spent:
    if other is None:
        return one
    return Spent(
        one.day, one.key, one.model, one.currency, one.requests + other.requests, one.estimated + other.estimated,
        one.prompt_tokens + other.prompt_tokens, one.completion_tokens + other.completion_tokens, one.cost + other.cost,
    )  # fmt: skip
