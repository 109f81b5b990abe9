"""The ledger: nothing is lost or counted twice, whatever is flushed when."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.router.listener.usage import Usage
from headway.router.spend.ledger import FILE_NAME, SpendLedger, read_spend
from headway.router.spend.period import Per, period_end, period_start
from headway.router.spend.summary import summed

DAY = date(2026, 11, 30)


def test_sums_survive_the_process_and_go_on(tmp_path: Path) -> None:
    first = SpendLedger(tmp_path, lambda: DAY)
    first.add("alice", "m", Usage(10, 5), 0.5, "USD")
    first.close()
    second = SpendLedger(tmp_path, lambda: DAY)
    second.add("alice", "m", Usage(1, 1, estimated=True), 0.25, "USD")
    assert second.spent("alice", "USD", DAY) == 0.75
    second.close()
    (entry,) = read_spend(tmp_path / FILE_NAME)
    assert (entry.requests, entry.estimated, entry.prompt_tokens, entry.completion_tokens, entry.cost) == (2, 1, 11, 6, 0.75)


def test_a_flush_between_adding_and_asking_changes_nothing(tmp_path: Path) -> None:
    ledger = SpendLedger(tmp_path, lambda: DAY)
    for count in range(1, 4):
        ledger.add("k", "m", Usage(1, 1), 1.0, "USD")
        ledger.flush()
        assert ledger.spent("k", "USD", DAY) == count
    assert ledger.spent("k", "EUR", DAY) == 0
    assert ledger.spent("other", "USD", DAY) == 0
    ledger.close()


def test_what_cannot_be_written_is_kept_and_written_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    folder.write_text("a file where the folder should be")
    ledger = SpendLedger(folder, lambda: DAY)
    ledger.add("k", "m", Usage(1, 1), 1.0, "USD")
    ledger.flush()
    ledger.flush()
    assert len(caplog.records) == 1
    folder.unlink()
    ledger.close()
    assert [entry.cost for entry in read_spend(folder / FILE_NAME)] == [1.0]


def test_a_damaged_file_stops_no_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 100)
    ledger = SpendLedger(tmp_path, lambda: DAY)
    ledger.add("k", "m", Usage(1, 1), 1.0, "USD")
    assert ledger.spent("k", "USD", DAY) == 1.0
    assert "cannot be read" in caplog.text
    ledger.close()
    assert [entry.cost for entry in read_spend(tmp_path / FILE_NAME)] == [1.0]


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.sampled_from(["day", "week", "month"]))
def test_each_day_is_in_its_period_and_the_period_ends_in_the_future(day: date, per: Per) -> None:
    start = period_start(per, day)
    assert start <= day
    assert period_start(per, start) == start
    now = datetime(day.year, day.month, day.day, 13, tzinfo=UTC)
    end = period_end(per, now)
    assert end is not None
    assert end > now
    assert (end.hour, end.minute, end.tzinfo) == (0, 0, UTC)
    assert period_start(per, end.date()) == end.date() > start


def test_sums_by_key_and_by_model() -> None:
    ledger = SpendLedger(Path("/nonexistent"), lambda: DAY)
    for key, model, cost in (("a", "x", 1.0), ("a", "y", 2.0), ("b", "x", 4.0)):
        ledger.add(key, model, Usage(1, 0), cost, "USD")
    entries = list(ledger._pending.values())
    assert [(row.key, row.cost) for row in summed(entries, ["key"])] == [("b", 4.0), ("a", 3.0)]
    assert [(row.model, row.cost) for row in summed(entries, ["model"])] == [("x", 5.0), ("y", 2.0)]
