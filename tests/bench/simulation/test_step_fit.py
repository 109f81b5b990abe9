from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from headway.bench.simulation.step_fit import fit_step_times, read_step_records
from headway.bench.simulation.step_times import Curve, StepTimes, StepWork, load_step_times, save_step_times
from headway.errors import ArtifactError, ConfigError

TRUE = StepTimes(Curve((0, 8, 512), (0.004, 0.006, 0.1)), Curve((0, 32), (0.0, 0.008)), chunk=0.001, pair=2e-8, context=5e-8)


def work(rng: random.Random) -> StepWork:
    chunks = [rng.randint(2, 256) for _ in range(rng.choice([0, 0, 1, 2]))]
    rows = rng.randint(0 if chunks else 1, 32)
    return StepWork(sum(chunks), len(chunks), sum(c * (c + 1) // 2 for c in chunks), rows, sum(rng.randint(10, 2000) for _ in range(rows)), rows + len(chunks))


def test_a_fit_finds_the_times_that_made_the_records() -> None:
    rng = random.Random(5)
    works = [work(rng) for _ in range(3000)]
    seconds = [TRUE.seconds(each) * rng.uniform(0.95, 1.05) for each in works]
    fitted = fit_step_times(works, seconds)
    others = [work(rng) for _ in range(500)]
    errors = [abs(fitted.seconds(each) / TRUE.seconds(each) - 1) for each in others]
    assert sum(errors) / len(errors) < 0.02
    assert max(errors) < 0.12
    assert sum(map(fitted.seconds, works)) == pytest.approx(sum(seconds))
    assert fitted.context == pytest.approx(TRUE.context, rel=0.1)


def test_time_never_falls_as_work_grows_even_with_noise() -> None:
    rng = random.Random(6)
    fitted = fit_step_times([work(rng) for _ in range(200)], [rng.uniform(0.001, 1.0) for _ in range(200)])
    for curve in (fitted.by_tokens, fitted.by_sampled):
        values = [curve(count) for count in range(0, 2000, 7)]
        assert values == sorted(values)
    assert min(fitted.chunk, fitted.pair, fitted.context) >= 0


def test_a_curve_goes_on_with_its_last_slope() -> None:
    curve = Curve((0, 10, 20), (1.0, 2.0, 4.0))
    assert [curve(count) for count in (0, 5, 10, 15, 20, 30)] == [1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def test_few_records_are_no_fit() -> None:
    with pytest.raises(ConfigError, match="at least 50"):
        fit_step_times([StepWork(decode_rows=1)] * 10, [0.1] * 10)


def test_step_times_come_back_from_their_file(tmp_path: Path) -> None:
    times = replace(TRUE, request_seconds=0.002, origin={"num_blocks": 7})
    save_step_times(times, tmp_path / "times.json")
    assert load_step_times(tmp_path / "times.json") == times


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"}, {"extra": 1}, {"pair": -1.0}, {"pair": float("nan")}, {"context": True}, {"by_tokens": None}, {"by_tokens": {"knots": [0], "seconds": [1.0]}},
        {"by_tokens": {"knots": [1, 2], "seconds": [1.0, 2.0]}}, {"by_tokens": {"knots": [0, 2], "seconds": [2.0, 1.0]}}, {"by_tokens": {"knots": [0, 2.5], "seconds": [1.0, 2.0]}},
        {"by_tokens": {"knots": list(range(100)), "seconds": [1.0] * 100}}, {"origin": 3},
    ],
)  # fmt: skip
def test_files_that_are_no_step_times(tmp_path: Path, change: dict[str, Any]) -> None:
    save_step_times(TRUE, tmp_path / "times.json")
    stored = json.loads((tmp_path / "times.json").read_text())
    (tmp_path / "times.json").write_text(json.dumps(stored | change))
    with pytest.raises(ConfigError) as error:
        load_step_times(tmp_path / "times.json")
    assert error.value.reason == "step_times_invalid"


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    works = [StepWork(10, 1, 55, 2, 30, 3), StepWork(decode_rows=1, decode_context=4, sampled=1)]
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps({"seconds": 0.5, **asdict(each)}) + "\n" for each in works) + '{"seconds": 0.')
    assert read_step_records(path) == (works, [0.5, 0.5])


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"seconds": 1}', json.dumps({"seconds": 0, **asdict(StepWork())}), json.dumps({"seconds": 1, **asdict(StepWork(decode_rows=-1))}),
                                  json.dumps({"seconds": float("nan"), **asdict(StepWork())})])  # fmt: skip
def test_lines_that_are_no_records(tmp_path: Path, line: str) -> None:
    (tmp_path / "steps").write_text(line + "\n")
    with pytest.raises(ConfigError, match="line 1") as error:
        read_step_records(tmp_path / "steps")
    assert error.value.reason == "step_records_invalid"
    with pytest.raises(ArtifactError):
        read_step_records(tmp_path / "missing")
