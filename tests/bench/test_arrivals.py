"""Arrival times: the rate is kept, the burstiness shows, ramps rise."""

from __future__ import annotations

import itertools
import random
from statistics import fmean, pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.arrivals import Arrivals, rate_at, send_times
from headway.errors import ConfigError


def test_an_infinite_rate_sends_all_at_once() -> None:
    assert send_times(Arrivals(), 3, random.Random(0)) == [0.0, 0.0, 0.0]


@given(st.floats(0.1, 1000), st.floats(0.05, 50), st.integers(2, 60), st.integers(0, 2**32))
def test_times_rise_and_their_mean_rate_is_the_one_asked_for(rate: float, burstiness: float, count: int, seed: int) -> None:
    times = send_times(Arrivals(rate, burstiness), count, random.Random(seed))
    assert times[0] == 0
    assert times == sorted(times)
    assert times[-1] == pytest.approx((count - 1) / rate)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gaps_have_the_variance_of_the_gamma_distribution(burstiness: float) -> None:
    times = send_times(Arrivals(10, burstiness), 20_000, random.Random(1))
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert fmean(gaps) == pytest.approx(0.1, rel=1e-3)
    assert pvariance(gaps) == pytest.approx(0.01 / burstiness, rel=0.1)


def test_ramps_go_from_start_to_end() -> None:
    linear = Arrivals(ramp="linear", start_rate=1, end_rate=9)
    exponential = Arrivals(ramp="exponential", start_rate=1, end_rate=100)
    assert [rate_at(linear, i, 5) for i in range(5)] == [1, 3, 5, 7, 9]
    assert [rate_at(exponential, i, 3) for i in range(3)] == pytest.approx([1, 10, 100])
    times = send_times(linear, 1000, random.Random(2))
    assert times[499] > times[-1] / 2, "the first half takes longer"


@pytest.mark.parametrize("burstiness", [0.5, 5.0])
def test_burstiness_does_not_change_how_long_a_ramp_takes(burstiness: float) -> None:
    ramp = Arrivals(burstiness=burstiness, ramp="linear", start_rate=10, end_rate=10)
    assert send_times(ramp, 5000, random.Random(3))[-1] == pytest.approx(499.9, rel=0.1)


@pytest.mark.parametrize(
    "wrong",
    [{"rate": 0}, {"rate": -1}, {"rate": float("nan")}, {"burstiness": 0}, {"ramp": "linear"}, {"ramp": "linear", "start_rate": 5, "end_rate": 1}],
)
def test_values_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Arrivals(**wrong)  # type: ignore[arg-type]
