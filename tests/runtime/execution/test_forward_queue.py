"""The policy of the queue, as properties of schedules that it is driven through without threads and clocks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.forward_queue import SHARED_TOKENS, SLICE_TOKENS, Batch, ForwardQueue, aligned
from headway.runtime.execution.job import Job
from headway.runtime.row import Row


def job(*lengths: int, now: float = 0.0, deadline: float | None = None, base: int = 0) -> Job:
    """Rows of these lengths, different from those of a job with another `base`."""
    made = Job(now, lambda job: None, deadline)
    made.tokens = made.begin_round([Row((base, *([index] * (length - 1))), "r") for index, length in enumerate(lengths)], now)
    return made


def queue_of(*jobs: Job, **settings: object) -> ForwardQueue:
    queue = ForwardQueue(ExecutionSettings(**settings))  # type: ignore[arg-type]
    for each in jobs:
        queue.add(each, each.arrived, each.tokens)
    return queue


def answer(batch: Batch) -> None:
    for key, readers in batch.readers.items():
        for reader in readers:
            reader.give(key, len(batch.rows[key].token_ids))


@dataclass(frozen=True)
class Load:
    """Rows of jobs that come one after the other, one before every pass."""

    jobs: list[list[int]]
    max_batch_tokens: int
    max_num_seqs: int | None
    share: bool


loads = st.builds(
    Load,
    st.lists(st.lists(st.integers(1, 300), min_size=1, max_size=8), min_size=1, max_size=12),
    st.integers(1, 2000),
    st.none() | st.integers(1, 5),
    st.booleans(),
)


@given(loads)
@settings(max_examples=200, deadline=None)
def test_nothing_is_lost_and_no_pass_is_too_large(load: Load) -> None:
    queue = queue_of(max_batch_tokens=load.max_batch_tokens, max_num_seqs=load.max_num_seqs, share_forwards=load.share)
    jobs = [job(*lengths, base=base) for base, lengths in enumerate(load.jobs, start=1)]
    coming = list(jobs)
    now = 0.0
    rows_run = 0
    while coming or len(queue):
        if coming:
            queue.add(coming[0], now, coming.pop(0).tokens)
        batch = queue.take(others_wait=False)
        rows_run += len(batch.rows)
        assert len(batch.rows) == 1 or batch.tokens <= load.max_batch_tokens
        assert load.max_num_seqs is None or len(batch.rows) <= load.max_num_seqs
        assert load.share or len(batch.jobs()) == 1
        answer(batch)
        now += 0.01
    assert all(each.is_round_done for each in jobs)
    assert [each.outcomes for each in jobs] == load.jobs  # each row's own, in the order of the request
    distinct = [{(index if length > 1 else 0, length) for index, length in enumerate(lengths)} for lengths in load.jobs]
    assert rows_run == sum(map(len, distinct))  # every row exactly once; those of one token are equal within a job


@given(loads)
@settings(max_examples=200, deadline=None)
def test_shared_passes_are_short_beyond_the_first_job(load: Load) -> None:
    jobs = [job(*lengths, base=base) for base, lengths in enumerate(load.jobs, start=1)]
    queue = queue_of(*jobs, max_batch_tokens=load.max_batch_tokens, max_num_seqs=load.max_num_seqs)
    first = min(jobs, key=lambda each: each.expected_finish)
    batch = queue.take(others_wait=False)
    assert first in batch.jobs()
    if len(batch.jobs()) > 1:
        assert sum(aligned(row) for row in batch.rows.values()) <= SHARED_TOKENS


def test_short_jobs_go_first() -> None:
    long, short = job(600, base=1), job(20, base=2)
    queue = queue_of(long, short)
    assert queue.take(others_wait=False).jobs() == [short]
    assert queue.take(others_wait=False).jobs() == [long]


def test_a_long_job_is_not_overtaken_for_ever() -> None:
    """One short job comes before every pass, each taking as long as was expected."""
    queue = queue_of(long := job(2000, base=1))
    now, passes = 0.0, 0
    while long.waiting:
        queue.add(job(600, now=now, base=passes + 2), now, 600)
        batch = queue.take(others_wait=False)
        now += batch.tokens * queue.seconds_per_token
        passes += 1
    assert passes == 4  # after 3 x 600 tokens a newcomer's expected finish is later than the long one's 2000


def test_a_row_that_is_too_large_runs_alone() -> None:
    queue = queue_of(job(50, 10, 10), max_batch_tokens=30)
    assert [len(queue.take(False).rows) for _ in range(2)] == [1, 2]
    assert len(queue) == 0


def test_equal_rows_are_computed_once_in_a_job_and_across_jobs() -> None:
    first, second = job(5, base=7), job(5, base=7)
    doubled = Job(0.0, lambda job: None)
    assert doubled.begin_round([Row((7, 0, 0, 0, 0), "r")] * 3, 0.0) == 5
    queue = queue_of(first, second, doubled, max_num_seqs=1)
    batch = queue.take(others_wait=False)
    assert len(batch.rows) == 1
    assert len(batch.jobs()) == 3
    answer(batch)
    assert doubled.outcomes == [5, 5, 5]


def test_rows_with_other_readouts_are_other_rows() -> None:
    made = Job(0.0, lambda job: None)
    made.begin_round([Row((1,), "a"), Row((1,), "b"), Row((1,), "a", detail=3), Row((1,), "a", payload=b"x")], 0.0)
    assert len(made.waiting) == 3


def test_large_jobs_run_in_slices_only_while_others_wait() -> None:
    lengths = [4000] * 5
    assert queue_of(job(*lengths)).take(others_wait=False).tokens == 20_000
    assert queue_of(job(*lengths)).take(others_wait=True).tokens == 2 * 4000 <= SLICE_TOKENS
    queue = queue_of(job(*lengths), job(*lengths, base=1))
    assert queue.take(others_wait=False).tokens == 2 * 4000


def test_only_who_lately_had_company_waits_for_it() -> None:
    alone = job(10, now=1.0, base=1)
    queue = queue_of(alone, batch_window_ms=2.0)
    assert queue.wait_until() == 0.0
    answer(queue.take(False))
    for base in (2, 3):
        queue.add(job(10, now=2.0, base=base), 2.0, 10)
    answer(queue.take(False))  # two together
    late = job(10, now=3.0, base=4)
    queue.add(late, 3.0, 10)
    assert queue.wait_until() == pytest.approx(3.002)
    queue.add(job(10, now=3.001, base=5), 3.001, 10)
    assert queue.wait_until() == 0.0  # as many as last time


def test_nobody_waits_for_company_that_may_not_join() -> None:
    for share, length in ((False, 10), (True, SHARED_TOKENS)):
        queue = queue_of(job(10, base=1), job(10, base=2), share_forwards=share)
        while len(queue):
            answer(queue.take(False))
        queue.add(job(length, base=3), 0.0, length)
        assert queue.wait_until() == 0.0


def test_deadlines() -> None:
    early, never = job(10, deadline=5.0, base=1), job(10, base=2)
    queue = queue_of(early, never)
    assert queue.late(4.9) == []
    assert queue.late(5.0) == [early]


def test_the_estimate_follows_what_is_measured() -> None:
    queue = queue_of()
    for _ in range(100):
        queue.measured(1000, 1.0)
    assert queue.seconds_per_token == pytest.approx(1e-3, rel=0.01)
    queue.measured(0, 1.0)
    assert queue.seconds_per_token == pytest.approx(1e-3, rel=0.01)
