"""A replica does what the engine's own scheduler does (engine_oracle.py), to the last step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.bench.simulation.fleet import Fleet, Replay, simulate
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import RequestTrace, request_trace
from headway.bench.simulation.step_times import Curve, StepTimes, constant_steps
from headway.errors import ConfigError
from tests.bench.simulation.engine_oracle import Seen, engine

TIMES = StepTimes(Curve((0, 4, 64), (0.5, 1.0, 3.0)), Curve((0, 8), (0.0, 0.25)), chunk=0.125, pair=1 / 1024, context=1 / 256)
LIMITS = ReplicaLimits(num_blocks=200, block_size=4, max_num_batched_tokens=64, max_num_seqs=8, enable_prefix_caching=False)


def agree(trace: RequestTrace, limits: ReplicaLimits, times: StepTimes = TIMES) -> tuple[Seen, Replay]:
    seen, replay = engine(trace, limits, times), simulate(trace, Fleet(times, limits))
    assert [replay.book.done[i] for i in range(len(trace))] == pytest.approx([seen.done[i] for i in range(len(trace))], rel=1e-9)
    assert [replay.book.first[i] for i in range(len(trace))] == pytest.approx([seen.first[i] for i in range(len(trace))], rel=1e-9)
    assert replay.book.preemptions == seen.preemptions
    assert replay.book.gaps.total == len(seen.gaps)
    assert replay.book.gaps.sum == pytest.approx(sum(seen.gaps), abs=1e-6)
    return seen, replay


@settings(max_examples=150, deadline=None)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(1, 30)), min_size=1, max_size=12),
    budget=st.integers(8, 80), seats=st.integers(1, 8), spare=st.integers(0, 15), size=st.sampled_from([1, 2, 4, 16]), threshold=st.sampled_from([0, 3]),
    reserve=st.booleans(), chunked=st.booleans(), watermark=st.sampled_from([0.0, 0.3]), interval=st.integers(1, 3),
)  # fmt: skip
def test_any_load_goes_as_in_the_engine(jobs, budget, seats, spare, size, threshold, reserve, chunked, watermark, interval) -> None:
    trace = request_trace([job[0] / 2 for job in jobs], [job[1] for job in jobs], [job[2] for job in jobs])
    agree(trace, ReplicaLimits(
        1 + 90 // size + spare, size, budget, seats, enable_prefix_caching=False, enable_chunked_prefill=chunked, long_prefill_token_threshold=threshold,
        scheduler_reserve_full_isl=reserve, watermark=watermark, prefill_schedule_interval=interval,
    ))  # fmt: skip


def test_many_steps_at_once_are_as_many_alone() -> None:
    trace = request_trace([0, 0.5, 40, 40.25, 300], [10, 3, 50, 7, 5], [400, 90, 200, 1, 2])
    seen, replay = agree(trace, LIMITS)
    assert replay.book.steps == seen.steps > 300


def test_blocks_that_run_out_preempt_the_last_who_came() -> None:
    seen, _ = agree(request_trace([0, 0, 1], [20, 20, 20], [60, 60, 60]), replace(LIMITS, num_blocks=26))
    assert seen.preemptions > 0


def test_a_shared_beginning_is_computed_once() -> None:
    trace = request_trace([0, 100, 200, 200], [40, 40, 50, 30], [5, 5, 5, 5], [0, 0, 0, 1], [30, 30, 30, 30])
    seen, replay = agree(trace, replace(LIMITS, enable_prefix_caching=True))
    assert replay.book.cached_tokens == seen.cached == 28 + 28  # whole blocks of 4
    assert agree(trace, LIMITS)[1].book.cached_tokens == 0


def test_one_beginning_for_many_in_the_same_step() -> None:
    trace = request_trace([0] * 6, [24] * 6, [4] * 6, [0] * 6, [20] * 6)
    seen, replay = agree(trace, replace(LIMITS, enable_prefix_caching=True))
    assert replay.book.cached_tokens == seen.cached == 100


def test_what_was_overwritten_is_not_found_again() -> None:
    jobs = [(0, 40, 4, 0, 40), (100, 90, 4, -1, 0), (200, 40, 4, 0, 40)]
    for blocks, cached in ((26, 8), (60, 36)):
        limits = replace(LIMITS, num_blocks=blocks, max_num_batched_tokens=128, enable_prefix_caching=True)
        seen, replay = agree(request_trace(*zip(*jobs, strict=True)), limits)
        assert (seen.cached, replay.book.cached_tokens) == (cached, cached)


def test_a_request_that_fits_nowhere_is_refused_and_hurts_nobody() -> None:
    replay = simulate(request_trace([0, 0], [1000, 8], [1, 2]), Fleet(constant_steps(1.0), LIMITS))
    assert (replay.refused, replay.book.done[0], replay.book.done[1]) == (1, -1.0, 2.0)


def test_limits_that_an_engine_would_refuse() -> None:
    with pytest.raises(ConfigError, match="max-num-batched-tokens"):
        ReplicaLimits(num_blocks=10, max_num_batched_tokens=4, max_num_seqs=5)
    with pytest.raises(ConfigError, match="num-blocks"):
        ReplicaLimits(num_blocks=0)
