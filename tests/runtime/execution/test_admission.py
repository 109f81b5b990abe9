"""Who is let in: a whole group or nobody, and what is too large when there is nobody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import QueueFullError
from headway.runtime.execution.admission import Admission


def test_a_group_is_refused_as_a_whole() -> None:
    admission = Admission(max_jobs=3, max_tokens=100)
    admission.admit(2, 50)
    for jobs, tokens in ((2, 10), (1, 51)):
        with pytest.raises(QueueFullError):
            admission.admit(jobs, tokens)
        assert (admission.jobs, admission.tokens) == (2, 50)
    admission.admit(1, 50)


def test_too_large_a_group_is_admitted_when_nothing_is_pending() -> None:
    admission = Admission(max_jobs=3, max_tokens=100)
    admission.admit(9, 1000)
    with pytest.raises(QueueFullError, match="9 requests with 1000 tokens"):
        admission.admit(1, 1)


def test_later_rounds_are_not_refused_but_counted() -> None:
    admission = Admission(max_jobs=1, max_tokens=10)
    admission.admit(1, 10)
    admission.grow(100)
    admission.release(110)
    assert (admission.jobs, admission.tokens) == (0, 0)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50)), max_size=30))
def test_the_limits_hold_unless_one_group_alone_is_over_them(groups: list[tuple[int, int]]) -> None:
    admission = Admission(max_jobs=6, max_tokens=80)
    inside: list[tuple[int, int]] = []
    for jobs, tokens in groups:
        try:
            admission.admit(jobs, tokens)
            inside.append((jobs, tokens))
        except QueueFullError:
            assert inside
            old = inside.pop(0)
            for _ in range(old[0]):
                admission.release(0)
            admission.grow(-old[1])
        assert (admission.jobs, admission.tokens) == (sum(j for j, _ in inside), sum(t for _, t in inside))
        assert len(inside) <= 1 or (admission.jobs <= 6 and admission.tokens <= 80)
