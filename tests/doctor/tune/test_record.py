"""The record: a tuning that was killed goes on, and never mixes with another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.tune.outcome import Outcome
from headway.doctor.tune.record import Record
from headway.doctor.tune.search import Effort
from headway.doctor.tune.setting import Knob, Setting
from headway.doctor.tune.tuning import Plan, run
from headway.errors import ConfigError

KNOB = Knob("max_num_seqs", ("1", "2", "4", "8"))


class Runs:
    """In the place of real servers; dies after `lives` runs."""

    def __init__(self, lives: int = 1000) -> None:
        self.lives, self.made, self.skipped, self.closed = lives, 0, 0, False

    def skip(self, setting: Setting) -> None:
        self.skipped += 1

    def run(self, setting: Setting) -> tuple[Outcome, dict[str, float]]:
        if self.made == self.lives:
            raise KeyboardInterrupt
        self.made += 1
        value = float(dict(setting)["max_num_seqs"])
        return Outcome(value), {"tokens_per_s": value, "ttft_p95_ms": 1.0}

    def close(self) -> None:
        self.closed = True


PLAN = Plan(["server"], ["server"], "throughput", (("max_num_seqs", "1"),), (KNOB,), Effort(), {"model": "m"})


def test_what_was_measured_before_the_interrupt_is_not_measured_again(tmp_path: Path) -> None:
    whole = Runs()
    expected, _ = run(PLAN, whole, tmp_path / "whole.jsonl", lambda step: None)  # type: ignore[arg-type]
    first = Runs(lives=5)
    with pytest.raises(KeyboardInterrupt):
        run(PLAN, first, tmp_path / "record.jsonl", lambda step: None)  # type: ignore[arg-type]
    assert first.closed
    second = Runs()
    tuned, record = run(PLAN, second, tmp_path / "record.jsonl", lambda step: None)  # type: ignore[arg-type]
    assert second.skipped == 5
    assert first.made + second.made == whole.made
    assert tuned.best == expected.best == (("max_num_seqs", "8"),)
    assert len(record.details) == whole.made


def test_a_line_that_was_cut_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record = Record(path, {"model": "m"})
    record.add((("a", "1"),), Outcome(1.0), {})
    record.add((("a", "1"),), Outcome(2.0), {})
    path.write_text(path.read_text()[:-20])
    again = Record(path, {"model": "m"})
    assert again.next((("a", "1"),)) == Outcome(1.0)
    assert again.next((("a", "1"),)) is None


def test_the_record_of_another_tuning_is_refused(tmp_path: Path) -> None:
    Record(tmp_path / "r", {"model": "m"})
    with pytest.raises(ConfigError, match="another tuning"):
        Record(tmp_path / "r", {"model": "other"})
    (tmp_path / "text").write_text("something else\n")
    with pytest.raises(ConfigError, match="another tuning"):
        Record(tmp_path / "text", {"model": "m"})
