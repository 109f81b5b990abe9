"""Fleets against arithmetic that is not ours: Lindley's recursion, the Pollaczek-Khinchine formula, what must be conserved and what must scale."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.bench.simulation.fleet import Fleet, Replay, simulate
from headway.bench.simulation.placement import PLACEMENTS
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import RequestTrace, request_trace
from headway.bench.simulation.step_times import Curve, StepTimes, constant_steps
from headway.errors import ConfigError

ONE_SEAT = ReplicaLimits(num_blocks=100, max_num_batched_tokens=64, max_num_seqs=1, enable_prefix_caching=False)
LIMITS = ReplicaLimits(num_blocks=60, block_size=4, max_num_batched_tokens=32, max_num_seqs=6)
TIMES = StepTimes(Curve((0, 4, 64), (0.5, 1.0, 3.0)), Curve((0, 8), (0.0, 0.25)), chunk=0.125, pair=1 / 1024, context=1 / 256)
JOBS = st.lists(
    st.tuples(st.integers(0, 80), st.integers(1, 60), st.integers(1, 30), st.integers(-1, 2)), min_size=1, max_size=30
).map(lambda jobs: request_trace([job[0] / 4 for job in jobs], [job[1] for job in jobs], [job[2] for job in jobs], [job[3] for job in jobs],
                                 [min(job[1], 20) if job[3] >= 0 else 0 for job in jobs]))  # fmt: skip


def poisson(count: int, rate: float) -> RequestTrace:
    rng = random.Random(7)
    times = np.cumsum([rng.expovariate(rate) for _ in range(count)])
    return request_trace(times, [10] * count, [1] * count)


def waits(trace: RequestTrace, replay: Replay, service: float) -> np.ndarray:
    return np.frombuffer(replay.book.done) - trace.arrival - service


def lindley(arrivals: np.ndarray, service: float) -> np.ndarray:
    """W(n+1) = max(0, W(n) + service - gap) (Lindley 1952)."""
    waited = np.zeros(len(arrivals))
    for n, gap in enumerate(np.diff(arrivals)):
        waited[n + 1] = max(0.0, waited[n] + service - gap)
    return waited


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_queue_with_one_seat_waits_as_queueing_theory_says(load: float) -> None:
    trace = poisson(40_000, load)
    waited = waits(trace, simulate(trace, Fleet(constant_steps(1.0), ONE_SEAT)), 1.0)
    assert np.allclose(waited, lindley(trace.arrival, 1.0), atol=1e-6)
    assert waited.mean() == pytest.approx(load / (2 * (1 - load)), rel=0.06)  # M/D/1, Pollaczek-Khinchine


def test_round_robin_is_one_queue_for_each_replica() -> None:
    trace = poisson(3000, 2.5)
    waited = waits(trace, simulate(trace, Fleet(constant_steps(1.0), ONE_SEAT, 3)), 1.0)
    for part in range(3):
        assert np.allclose(waited[part::3], lindley(trace.arrival[part::3], 1.0), atol=1e-6)


def test_the_least_load_waits_less_than_turns_and_two_choices_are_between() -> None:
    """Of answers that differ much in length; turns do well when all are alike."""
    rng = random.Random(8)
    times = np.cumsum([rng.expovariate(0.85) for _ in range(8000)])
    trace = request_trace(times, [10] * 8000, [1 if rng.random() < 0.9 else 80 for _ in range(8000)])
    mean = {name: waits(trace, simulate(trace, Fleet(constant_steps(1.0), ONE_SEAT, 10, name)), 1.0).mean() for name in PLACEMENTS}
    assert mean["least-load"] < mean["two-choices"] < mean["round-robin"]
    assert mean["prefix-aware"] == mean["least-load"]  # there are no prefixes


@settings(max_examples=60, deadline=None)
@given(trace=JOBS, replicas=st.integers(1, 5), placement=st.sampled_from(sorted(PLACEMENTS)), caching=st.booleans())
def test_every_request_ends_once_and_tokens_add_up(trace: RequestTrace, replicas: int, placement: str, caching: bool) -> None:
    limits = ReplicaLimits(60, 4, 32, 6, enable_prefix_caching=caching)
    replay = simulate(trace, Fleet(TIMES, limits, replicas, placement))
    book, count = replay.book, len(trace)
    assert replay.refused == 0
    assert all(0 <= trace.arrival[i] < book.first[i] <= book.done[i] <= replay.end for i in range(count))
    assert book.gaps.total == int((trace.output - 1).sum())
    assert book.gaps.sum == pytest.approx(sum(book.done[i] - book.first[i] for i in range(count)), abs=1e-6)
    assert book.looked_up_tokens == int(trace.prompt.sum())
    assert book.prompt_tokens + book.cached_tokens >= int(trace.prompt.sum())
    assert book.preemptions or book.prompt_tokens + book.cached_tokens == int(trace.prompt.sum())
    assert all(busy <= replay.end + 1e-9 for busy in replay.busy)


@settings(max_examples=40, deadline=None)
@given(trace=JOBS, replicas=st.integers(1, 3), placement=st.sampled_from(sorted(PLACEMENTS)))
def test_time_has_no_unit(trace: RequestTrace, replicas: int, placement: str) -> None:
    """Everything four times as slow is everything four times as late: a power of two keeps the digits."""
    slow = StepTimes(
        Curve(TIMES.by_tokens.knots, tuple(4 * s for s in TIMES.by_tokens.seconds)), Curve(TIMES.by_sampled.knots, tuple(4 * s for s in TIMES.by_sampled.seconds)),
        4 * TIMES.chunk, 4 * TIMES.pair, 4 * TIMES.context,
    )  # fmt: skip
    later = RequestTrace(trace.arrival * 4, trace.prompt, trace.output, trace.prefix, trace.shared)
    fast = simulate(trace, Fleet(TIMES, LIMITS, replicas, placement)).book
    assert simulate(later, Fleet(slow, LIMITS, replicas, placement)).book.done.tolist() == pytest.approx([4 * moment for moment in fast.done], rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(trace=JOBS, replicas=st.integers(1, 3))
def test_twice_the_replicas_make_nobody_wait_longer(trace: RequestTrace, replicas: int) -> None:
    """With one seat and turns, each of twice as many replicas has part of the queue of one: nobody is put in front. (With batches, or from n to
    n + 1 replicas, single requests may well come later.)"""
    limits = ReplicaLimits(100, 4, 64, 1, enable_prefix_caching=False)
    few = simulate(trace, Fleet(TIMES, limits, replicas)).book
    many = simulate(trace, Fleet(TIMES, limits, 2 * replicas)).book
    assert all(more <= one + 1e-9 for more, one in zip(many.done, few.done, strict=True))


def test_prefix_aware_placement_finds_more_and_stays_balanced() -> None:
    rng = random.Random(3)
    count = 2000
    trace = request_trace(
        np.cumsum([rng.expovariate(4.0) for _ in range(count)]), [60] * count, [4] * count, [rng.randrange(40) for _ in range(count)], [48] * count
    )
    limits = ReplicaLimits(200, 4, 128, 8)
    share = {}
    for name in ("least-load", "prefix-aware"):
        replay = simulate(trace, Fleet(constant_steps(0.2), limits, 4, name))
        share[name] = replay.book.cached_tokens / replay.book.looked_up_tokens
        assert min(replay.busy) > 0.7 * max(replay.busy)
    assert share["prefix-aware"] > share["least-load"] + 0.1


def test_fleets_that_cannot_be() -> None:
    for wrong in ({"replicas": 0}, {"replicas": 10_001}, {"placement": "best"}):
        with pytest.raises(ConfigError):
            Fleet(constant_steps(1.0), LIMITS, **wrong)  # type: ignore[arg-type]


def test_ten_thousand_replicas() -> None:
    trace = poisson(20_000, 5000.0)
    replay = simulate(trace, Fleet(constant_steps(1.0), LIMITS, 10_000, "least-load"))
    assert max(replay.busy) <= 2.0 + 1e-9
    assert sum(replay.busy) == pytest.approx(20_000.0)
