"""Records: written beside, bounded, filtered."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from headway.errors import NotFoundError
from headway.router.stores.replays.store import Filters, OutcomeConflictError, ReplayStore


def record(name: str, **fields: Any) -> dict[str, Any]:
    usual = {"recipe": "default", "decision": "d", "selected_model": "m", "session_id": "s", "cache_status": "miss"}
    return {"id": name, "timestamp": time.time(), "status": 200, "latency_ms": 5.0, "usage": {"total_tokens": 3}, **usual, **fields}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_filters_pages_and_counts(tmp_path: Path, asynchronous: bool) -> None:
    store = ReplayStore(tmp_path / "r.sqlite", 100, 0, asynchronous)
    for at in range(10):
        store.add(record(f"r{at}", timestamp=float(at), decision=f"d{at % 2}", status=500 if at == 3 else 200, request_body=f"Text {at}"))
    found, total = store.find(Filters(), 3, 1)
    assert ([each["id"] for each in found], total) == (["r8", "r7", "r6"], 10)
    assert [each["id"] for each in store.find(Filters(decision="d1"), 9, 0)[0]] == ["r9", "r7", "r5", "r3", "r1"]
    assert [each["id"] for each in store.find(Filters(search="TEXT 7"), 9, 0)[0]] == ["r7"]
    assert store.find(Filters(search="'; DROP TABLE replays; --"), 9, 0) == ([], 0)
    assert [each["id"] for each in store.trajectory("s", 3)] == ["r0", "r1", "r2"]
    counted = store.aggregate(Filters())
    assert (counted["total"], counted["errors"], counted["total_tokens"], counted["decisions"]) == (10, 1, 30, {"d0": 5, "d1": 5})
    store.close()
    again = ReplayStore(tmp_path / "r.sqlite", 100, 0)
    assert again.find(Filters(), 1, 0)[1] == 10
    again.close()
    assert oct((tmp_path / "r.sqlite").stat().st_mode & 0o777) == "0o600"


def test_the_oldest_go_by_number_and_by_age() -> None:
    store = ReplayStore(None, 3, 100)
    for at in range(6):
        store.add(record(f"r{at}", timestamp=time.time() + at))
    assert {each["id"] for each in store.find(Filters(), 9, 0)[0]} == {"r3", "r4", "r5"}
    store.add(record("old", timestamp=time.time() - 101))
    assert "old" not in {each["id"] for each in store.find(Filters(), 9, 0)[0]}
    store.close()


def test_outcomes_are_kept_once_per_key() -> None:
    store = ReplayStore(None, 10, 0)
    store.add(record("r"))
    first, new = store.add_outcome("r", {"target": "model", "verdict": "good"}, "k")
    again, newer = store.add_outcome("r", {"target": "model", "verdict": "good"}, "k")
    assert (new, newer, first) == (True, False, again)
    with pytest.raises(OutcomeConflictError):
        store.add_outcome("r", {"target": "model", "verdict": "bad"}, "k")
    with pytest.raises(NotFoundError):
        store.add_outcome("x", {"target": "model", "verdict": "bad"})
    assert [each["verdict"] for each in store.get("r")["outcomes"]] == ["good"]
    early, _ = store.add_outcome("later", {"target": "model", "verdict": "early"}, early=True)
    store.add(record("later"))
    assert store.get("later")["outcomes"] == [early]
    store.close()


def test_a_full_queue_drops_and_counts() -> None:
    store = ReplayStore(None, 10_000, 0)
    with store._lock:  # the writer waits for it
        for at in range(2000):
            store.add(record(f"r{at}"))
    written = store.find(Filters(), 1, 0)[1]
    assert store.dropped > 0
    assert written + store.dropped == 2000
    store.close()


def test_a_file_that_cannot_be_written_costs_records_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ReplayStore(tmp_path / "r.sqlite", 10, 0, asynchronous=False)
    store._database.execute("DROP TABLE replays")
    store.add(record("a"))
    assert store.dropped == 1
    assert "cannot be written" in caplog.text
    with pytest.raises(sqlite3.OperationalError):
        store.find(Filters(), 1, 0)
