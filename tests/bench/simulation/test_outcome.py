from __future__ import annotations

import math
import random

import numpy as np
import pytest

from headway.bench.simulation.fleet import Fleet, simulate
from headway.bench.simulation.latency_histogram import LatencyHistogram
from headway.bench.simulation.outcome import Promises, outcome, smallest_good
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import request_trace
from headway.bench.simulation.step_times import constant_steps
from headway.errors import ConfigError

LIMITS = ReplicaLimits(num_blocks=100, max_num_batched_tokens=64, max_num_seqs=1, enable_prefix_caching=False)


def test_a_case_reckoned_by_hand() -> None:
    """One seat, steps of 1 s, 0.5 s outside of steps. Request 0: at 0, tokens at 1, 2, 3. Request 1: at 1, waits to 3, tokens at 4, 5.
    Request 2 is longer than the cache."""
    trace = request_trace([0, 1, 1], [10, 20, 5000], [3, 2, 1])
    fleet = Fleet(constant_steps(1.0, 0.5), LIMITS, 2 - 1)
    found = outcome(trace, fleet, simulate(trace, fleet), Promises(ttft=2.0, itl=1.0, e2e=5.0, share=0.3), price_per_hour=720.0)
    assert (found["completed"], found["refused"], found["output_tokens"], found["prompt_tokens"]) == (2, 1, 5, 30)
    assert found["seconds"] == 5.5
    assert found["ttft"] == {"mean": 2.5, "p50": 2.5, "p90": pytest.approx(3.3), "p99": pytest.approx(3.48)}
    assert found["e2e"]["mean"] == pytest.approx((3.5 + 4.5) / 2)
    assert found["itl"]["p50"] == pytest.approx(1.0, rel=0.006)
    assert found["attained_by"] == {"ttft": pytest.approx(1 / 3), "itl": pytest.approx(2 / 3), "e2e": pytest.approx(2 / 3)}
    assert (found["attained"], found["good_enough"]) == (pytest.approx(1 / 3), True)
    assert found["utilization"]["mean"] == pytest.approx(5 / 5.5)
    assert found["cost"] == pytest.approx(5.5 / 3600 * 720)
    assert found["cost_per_million_output_tokens"] == pytest.approx(1.1 / 5 * 1e6)
    assert sum(found["arrivals_over_time"]) == 3


def test_the_smallest_fleet_that_is_good_enough() -> None:
    fleets = [{"replicas": count, "good_enough": count >= 4} for count in (8, 2, 4)]
    assert smallest_good(fleets) == {"replicas": 4, "good_enough": True}
    assert smallest_good(fleets[1:2]) is None


def test_nothing_served_is_an_outcome() -> None:
    trace = request_trace([0], [100_000], [1])
    fleet = Fleet(constant_steps(1.0), LIMITS)
    found = outcome(trace, fleet, simulate(trace, fleet), Promises(ttft=1.0))
    assert (found["attained"], found["output_tokens_per_second"], found["ttft"]["p99"], found["itl"]["mean"]) == (0.0, 0.0, None, None)


def test_promises_that_mean_nothing() -> None:
    for wrong in ({"ttft": 0.0}, {"itl": math.nan}, {"e2e": math.inf}, {"share": 0.0}, {"share": 1.1}):
        with pytest.raises(ConfigError):
            Promises(**wrong)


def test_percentiles_of_gaps_are_within_a_percent_of_numpys() -> None:
    rng = random.Random(1)
    values = [rng.lognormvariate(-4, 1) for _ in range(20_000)]
    gaps = LatencyHistogram()
    for value in values:
        gaps.add(value, 1)
    for percent in (1, 50, 90, 99):
        assert gaps.percentile(percent) == pytest.approx(np.percentile(values, percent), rel=0.01)
    assert gaps.mean == pytest.approx(np.mean(values))
    assert gaps.share_up_to(float(np.median(values))) == pytest.approx(0.5, abs=0.01)


def test_rising_gaps_count_as_if_added_one_by_one() -> None:
    together, alone = LatencyHistogram(), LatencyHistogram()
    together.add_rising(0.01, 0.0001, 500, 3)
    for i in range(500):
        alone.add(0.01 + 0.0001 * i, 3)
    assert (together.total, together.sum) == (alone.total, pytest.approx(alone.sum))
    for percent in (10, 50, 99):
        assert together.percentile(percent) == pytest.approx(alone.percentile(percent), rel=0.02)
