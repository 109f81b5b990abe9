"""What is kept, and what leaves first."""

from __future__ import annotations

import numpy as np

from headway.runtime.execution.result_cache import ResultCache
from headway.runtime.execution.row_key import key_of
from headway.runtime.row import ItemFailure, Row


def key(number: int, readout: str = "r") -> tuple[bytes, str, object]:
    return key_of(Row((number,), readout))


def test_the_least_recently_used_leaves_first() -> None:
    cache = ResultCache(2)
    cache.put(key(1), "one")
    cache.put(key(2), "two")
    assert cache.get(key(1)) == "one"
    cache.put(key(3), "three")
    assert [cache.get(key(number)) for number in (1, 2, 3)] == ["one", None, "three"]
    assert len(cache) == 2


def test_failures_and_nothing_are_not_kept() -> None:
    cache = ResultCache(2)
    cache.put(key(1), ItemFailure("deadline_exceeded"))
    cache.put(key(2), None)
    assert len(cache) == 0


def test_zero_entries_keep_nothing() -> None:
    cache = ResultCache(0)
    cache.put(key(1), np.ones(1))
    assert len(cache) == 0
    assert not cache.is_on


def test_a_key_tells_readouts_details_and_lengths_apart() -> None:
    rows = [Row((1,), "a"), Row((1,), "b"), Row((1,), "a", detail=1), Row((1, 0), "a"), Row((256,), "a"), Row((2**40,), "a")]
    assert len({key_of(row) for row in rows}) == len(rows)
    assert key_of(Row((1, 2), "a", payload=b"x")) == key_of(Row((1, 2), "a"))
