"""ReplayStore: records of requests in SQLite, written beside the requests."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from headway.errors import HeadwayError, NotFoundError
from headway.router.stores.database import opened
from headway.router.stores.replays.writing_together import write_together

_LOG = logging.getLogger(__name__)
_QUEUE = 1024  # records that wait to be written; more are dropped and counted
_BATCH = 128
_EARLY_SECONDS = 3600  # how long an outcome waits for its record
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replays (id TEXT PRIMARY KEY, created REAL NOT NULL, recipe TEXT NOT NULL, decision TEXT NOT NULL, model TEXT NOT NULL,
    session TEXT NOT NULL, cache TEXT NOT NULL, status INTEGER NOT NULL, tokens INTEGER NOT NULL, latency REAL NOT NULL, record BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS replays_created ON replays (created);
CREATE INDEX IF NOT EXISTS replays_session ON replays (session, created);
CREATE TABLE IF NOT EXISTS outcomes (id TEXT PRIMARY KEY, replay TEXT NOT NULL, created REAL NOT NULL, key TEXT UNIQUE, outcome BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS outcomes_replay ON outcomes (replay, created);
"""
COLUMNS = ("recipe", "decision", "model", "session", "cache")


class OutcomeConflictError(HeadwayError):
    """The same Idempotency-Key came with another outcome."""

    reason = "idempotency_conflict"


@dataclass(frozen=True, slots=True)
class Filters:
    """Each None matches all. `search` is looked for in the whole record, in any case."""

    recipe: str | None = None
    decision: str | None = None
    model: str | None = None
    session: str | None = None
    cache: str | None = None
    search: str | None = None

    def clause(self) -> tuple[str, list[Any]]:
        named = [(name, getattr(self, name)) for name in COLUMNS if getattr(self, name) is not None]
        conditions = [f"{name} = ?" for name, _ in named]
        values: list[Any] = [value for _, value in named]
        if self.search:
            conditions.append("instr(lower(CAST(record AS TEXT)), ?) > 0")
            values.append(self.search.lower())
        return (" WHERE " + " AND ".join(conditions) if conditions else ""), values


    def match(self, columns: Mapping[str, Any], record: bytes) -> bool:
        """Whether a record with these `columns` is one; `record` is its JSON, needed for `search` alone."""
        if any(getattr(self, name) not in (None, columns[name]) for name in COLUMNS):
            return False
        return not self.search or self.search.lower() in record.decode(errors="replace").lower()


class ReplayStore:
    """`add` never waits and never raises. The oldest records go when there are more than `max_records`, and when they are older than `ttl` seconds (0:
    never). Any thread may call; reading waits until what was added before is written."""

    def __init__(self, path: Path | None, max_records: int, ttl: float, asynchronous: bool = True) -> None:
        """`path` None: in memory."""
        self._database = opened(path, _SCHEMA) if path else sqlite3.connect(":memory:", check_same_thread=False)
        if path is None:
            self._database.executescript(_SCHEMA)
        self._lock = threading.Lock()
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue(_QUEUE)
        self._writer: threading.Thread | None = None
        self._failing = False
        self.dropped = 0
        self.limit(max_records, ttl)
        if asynchronous:
            self._writer = threading.Thread(target=self._write_queue, name="replays", daemon=True)
            self._writer.start()

    def limit(self, max_records: int, ttl: float) -> None:
        """From now on."""
        self._max, self._ttl = max_records, ttl

    def add(self, record: Mapping[str, Any]) -> None:
        """`record` has `id`, `timestamp`, and what the columns are made of; it is not changed later."""
        if self._writer is None:
            self._write([record])
            return
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def find(self, filters: Filters, limit: int, offset: int) -> tuple[Sequence[dict[str, Any]], int]:
        """The newest first, and how many match."""
        clause, values = filters.clause()
        rows = self._rows(f"SELECT record FROM replays{clause} ORDER BY created DESC, rowid DESC LIMIT ? OFFSET ?", *values, limit, offset)
        return [orjson.loads(row[0]) for row in rows], int(self._rows(f"SELECT count(*) FROM replays{clause}", *values)[0][0])

    def get(self, replay: str) -> dict[str, Any]:
        """With its outcomes. Raises NotFoundError."""
        rows = self._rows("SELECT record FROM replays WHERE id = ?", replay)
        if not rows:
            raise NotFoundError(f'there is no replay "{replay}"', fix="Records end with their time or when there are too many.")
        outcomes = self._rows("SELECT outcome FROM outcomes WHERE replay = ? ORDER BY created, rowid", replay)
        return {**orjson.loads(rows[0][0]), "outcomes": [orjson.loads(row[0]) for row in outcomes]}

    def aggregate(self, filters: Filters) -> dict[str, Any]:
        """Counts by decision, model and cache status, tokens and the mean latency in milliseconds."""
        clause, values = filters.clause()
        total, errors, tokens, latency = self._rows(
            f"SELECT count(*), coalesce(sum(status >= 400), 0), coalesce(sum(tokens), 0), avg(latency) FROM replays{clause}", *values
        )[0]
        by = {
            name: dict(self._rows(f"SELECT {column}, count(*) FROM replays{clause} GROUP BY {column} ORDER BY count(*) DESC LIMIT 100", *values))
            for name, column in (("decisions", "decision"), ("models", "model"), ("cache_statuses", "cache"), ("recipes", "recipe"))
        }
        return {"total": total, "errors": errors, "total_tokens": tokens, "mean_latency_ms": latency, **by}

    def trajectory(self, session: str, limit: int) -> Sequence[dict[str, Any]]:
        """The records of one session, the oldest first."""
        rows = self._rows("SELECT record FROM replays WHERE session = ? ORDER BY created, rowid LIMIT ?", session, limit)
        return [orjson.loads(row[0]) for row in rows]

    def add_outcome(self, replay: str, outcome: Mapping[str, Any], key: str | None = None, early: bool = False) -> tuple[dict[str, Any], bool]:
        """The outcome as kept, and whether it is new: the same key and content gives the first one again. `early`: the record may come later, as that
        of a stream does. Raises NotFoundError, OutcomeConflictError."""
        if not early:
            self.get(replay)
        with self._lock:
            if key is not None:
                known = self._database.execute("SELECT outcome FROM outcomes WHERE key = ?", (key,)).fetchone()
                if known is not None:
                    kept = orjson.loads(known[0])
                    if {name: kept.get(name) for name in outcome} != dict(outcome) or kept["replay_id"] != replay:
                        raise OutcomeConflictError("this Idempotency-Key was used for another outcome", fix="Use a new key.")
                    return kept, False
            made = {"id": f"out_{uuid.uuid4().hex[:24]}", "replay_id": replay, "created_at": int(time.time()), **outcome}
            with self._database:
                self._database.execute("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", (made["id"], replay, time.time(), key, orjson.dumps(made)))
        return made, True

    def close(self) -> None:
        """After writing what waits."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join(timeout=10)
        with self._lock:
            self._database.close()

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        if self._writer is not None:
            self._queue.join()
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def _write_queue(self) -> None:
        write_together(self._queue, _BATCH, self._write)

    def _write(self, records: Sequence[Mapping[str, Any]]) -> None:
        try:
            with self._lock, self._database:
                self._database.executemany("INSERT OR REPLACE INTO replays VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_row, records))
                self._prune()
            self._failing = False
        except sqlite3.Error as error:
            self.dropped += len(records)
            if not self._failing:
                _LOG.warning("replays cannot be written: %s", error)
            self._failing = True

    def _prune(self) -> None:
        run = self._database.execute
        if self._ttl:
            run("DELETE FROM replays WHERE created < ?", (time.time() - self._ttl,))
        run("DELETE FROM replays WHERE id IN (SELECT id FROM replays ORDER BY created DESC, rowid DESC LIMIT -1 OFFSET ?)", (self._max,))
        run("DELETE FROM outcomes WHERE created < ? AND replay NOT IN (SELECT id FROM replays)", (time.time() - _EARLY_SECONDS,))


def columns_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """COLUMNS, then status, tokens and latency in milliseconds."""
    texts = [str(record.get(name) or "") for name in ("recipe", "decision", "selected_model", "session_id", "cache_status")]
    tokens = (record.get("usage") or {}).get("total_tokens") or 0
    return *texts, record["status"], tokens, record["latency_ms"]


def _row(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record["id"], record["timestamp"], *columns_of(record), orjson.dumps(record)
