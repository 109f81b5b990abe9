from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.evaluation.interval import Interval, mcnemar, paired_drop, ratio_interval, share_error
from headway.evaluation.judgement import decide, judge_task, judge_text, overall
from headway.evaluation.task_file import Question, Task
from headway.evaluation.task_results import TaskComparison


def test_the_interval_of_a_ratio_covers_the_truth() -> None:
    """Blocks of different sizes; 95 of 100 intervals hold the ratio that the numbers were drawn with."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        counts = rng.integers(20, 200, 30).astype(np.float64)
        sums = 0.05 * counts + rng.normal(size=30) * np.sqrt(counts)
        found = ratio_interval(sums, counts)
        hits += found.low <= 0.05 <= found.high
    assert 925 <= hits <= 972


def test_the_interval_of_equal_blocks_is_that_of_a_mean() -> None:
    from scipy import stats

    values = np.random.default_rng(2).normal(size=12)
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    found = ratio_interval(values * 7, np.full(12, 7.0))
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))


def test_one_block_tells_nothing() -> None:
    assert ratio_interval(np.array([1.0]), np.array([2.0])) == Interval(0.5, -math.inf, math.inf)


@pytest.mark.parametrize(("lost", "gained", "other"), [(0.05, 0.03, 200), (0.01, 0.01, 500), (0.2, 0.1, 60)])
def test_the_interval_of_a_drop_covers_the_truth(lost: float, gained: float, other: int) -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for changes in rng.multinomial(other, [lost, gained, 1 - lost - gained], 1000):
        found = paired_drop(int(changes[0]), int(changes[1]), other)
        hits += found.low <= lost - gained <= found.high
    assert hits >= 930


def test_no_change_is_no_proof_that_there_is_none() -> None:
    """With no change among n the true rate may still be 3/n: the rule of three."""
    found = paired_drop(0, 0, 100)
    assert found.value == 0
    assert 0.01 < found.high < 0.04
    assert paired_drop(0, 0, 10_000).high < 0.0005


def test_uneven_changes() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(10, 0) == pytest.approx(2 / 2**10)
    assert mcnemar(5, 5) == 1
    assert math.isnan(share_error(1, 1))


@given(low=st.floats(-0.1, 0.1), reach=st.floats(0, 0.1), threshold=st.floats(0.001, 0.1))
def test_only_what_is_certain_is_decided(low: float, reach: float, threshold: float) -> None:
    found = decide(Interval(low + reach / 2, low, low + reach), threshold)
    assert found == ("fail" if low > threshold else "pass" if low + reach <= threshold else "cannot tell")


def test_what_is_no_number_fails() -> None:
    assert decide(Interval(math.nan, math.nan, math.nan), 0.01) == "fail"
    assert decide(Interval(math.inf, math.inf, math.inf), 0.01) == "fail"


def of_task(lost: int, gained: int, asked: int, *, packaged: bool = False) -> TaskComparison:
    task = Task("t", tuple(Question("q", ("a", "b"), 0) for _ in range(asked)), packaged=packaged)
    return TaskComparison(task, lost, gained, lost + gained, paired_drop(lost, gained, asked), mcnemar(lost, gained))


def test_too_few_questions_say_how_many_would_tell() -> None:
    found = judge_task(of_task(2, 1, 100), 0.01)
    assert found.decision == "cannot tell"
    assert found.more is not None
    assert found.more.endswith("questions would tell")
    needed = int(found.more.split()[1].replace(",", ""))
    assert judge_task(of_task(needed * 3 // 100, needed * 3 // 100, needed), 0.01).decision == "pass"


def test_the_packaged_questions_can_fail_a_model_and_not_hold_it_up() -> None:
    good = judge_text(Interval(0.001, 0.0, 0.002), 0.01)
    unsure, lost = judge_task(of_task(1, 1, 100, packaged=True), 0.01), judge_task(of_task(40, 0, 100, packaged=True), 0.01)
    assert (unsure.decision, lost.decision) == ("cannot tell", "fail")
    assert overall([good, unsure]) == "pass"
    assert overall([good, lost]) == "fail"
    assert overall([unsure]) == "cannot tell"
    assert overall([good, judge_task(of_task(1, 1, 100), 0.01)]) == "cannot tell"
    assert overall([]) == "cannot tell"
