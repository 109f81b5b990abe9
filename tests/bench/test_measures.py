"""Every formula against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.measures import (
    Exchange,
    meets,
    peak_concurrency,
    peak_tokens_per_second,
    percentile,
    spread_ms,
    summarize,
)

FIRST = Exchange(prompt_tokens=10, output_tokens=5, start=100.0, ttft=0.2, itls=[0.1, 0.1, 0.3, 0.1], latency=0.8)
SECOND = Exchange(prompt_tokens=30, output_tokens=1, start=100.5, ttft=0.4, latency=0.4)
FAILED = Exchange(prompt_tokens=99, start=100.0, latency=9.0, error="HTTP 503: full")


def test_tpot_leaves_the_first_token_out() -> None:
    assert FIRST.tpot == pytest.approx((0.8 - 0.2) / 4)
    assert SECOND.tpot is None


def test_summary() -> None:
    summary = summarize([FIRST, FAILED, SECOND], 2.0, [50, 99], {"ttft": 300})
    assert (summary.completed, summary.failed) == (2, 1)
    assert (summary.input_tokens, summary.output_tokens) == (40, 6)
    assert summary.request_throughput == 1.0
    assert summary.output_throughput == 3.0
    assert summary.total_token_throughput == 23.0
    assert summary.goodput == 0.5, "only the first kept its promise"
    assert summary.spreads["ttft"].mean == pytest.approx(300)
    assert summary.spreads["ttft"].std == pytest.approx(100)
    assert summary.spreads["tpot"].mean == pytest.approx(150), "one token has no tpot"
    assert summary.spreads["itl"].median == pytest.approx(100)
    assert summary.spreads["itl"].mean == pytest.approx(150), "the first token is no gap"
    assert summary.spreads["e2el"].percentiles == ((50, pytest.approx(600)), (99, pytest.approx(796)))


def test_goodput_is_absent_without_promises_and_zeros_stand_for_no_data() -> None:
    summary = summarize([FAILED], 1.0, [99], {})
    assert summary.goodput is None
    assert (summary.completed, summary.output_throughput, summary.peak_output_tokens, summary.peak_concurrency) == (0, 0, 0, 0)
    assert summary.spreads["ttft"].mean == 0


@pytest.mark.parametrize(
    ("goals", "kept"),
    [({"ttft": 200}, True), ({"ttft": 199}, False), ({"tpot": 151}, True), ({"tpot": 149}, False), ({"e2el": 801, "ttft": 1}, False)],
)
def test_meets(goals: dict[str, float], kept: bool) -> None:
    assert meets(FIRST, goals) is kept


def test_peak_concurrency_does_not_count_an_end_and_a_start_at_one_instant() -> None:
    def at(start: float, end: float) -> Exchange:
        return Exchange(1, start=start, latency=end - start)

    assert peak_concurrency([at(0, 1), at(1, 2), at(2, 3)]) == 1
    assert peak_concurrency([at(0, 3), at(1, 2), at(1.5, 4)]) == 3


def test_peak_tokens_counts_by_second_and_shares_tokens_among_frames() -> None:
    # 4 tokens in 2 frames at 0.5 and 1.5 s, 3 tokens in 3 frames at 1.1, 1.2 and 2.4 s
    two = Exchange(1, output_tokens=4, start=10.0, ttft=0.5, itls=[1.0])
    three = Exchange(1, output_tokens=3, start=10.25, ttft=0.85, itls=[0.1, 1.2])
    assert peak_tokens_per_second([two, three]) == 4.0  # second 1: 2 + 1 + 1


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentile_is_numpys(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)), rel=1e-9, abs=1e-9)


def test_percentile_of_nothing_is_nan_and_spread_is_in_milliseconds() -> None:
    assert math.isnan(percentile([], 50))
    spread = spread_ms([0.001, 0.003], [50])
    assert (spread.mean, spread.median, spread.std, spread.percentiles) == (2.0, 2.0, 1.0, ((50, 2.0),))
