"""BackOff and Restarts: when an engine is loaded again, what is told meanwhile, and when it is given up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.engine.recovery.back_off import BackOff
from headway.engine.recovery.restart import Restart
from headway.engine.recovery.restarts import Restarts
from headway.errors import CapacityError, EngineDeadError, RankError

FAILURE = RankError(3, "node-b", "it was not heard for 60 s")


@given(st.lists(st.floats(0, 1000), max_size=60), st.integers(1, 6), st.floats(1, 500))
def test_no_window_ever_holds_more_attempts_than_there_are(failures: list[float], most: int, window: float) -> None:
    back_off = BackOff(tuple(2.0**i for i in range(most)), window)
    begun: list[float] = []
    for now in sorted(failures):
        if (seconds := back_off.wait(begun, now)) is not None:
            assert seconds == 2.0 ** back_off.recent(begun, now)
            begun.append(now)
    for first in begun:
        assert sum(first <= at < first + window for at in begun) <= most
    assert BackOff().seconds == tuple(sorted(BackOff().seconds))


class World:
    """A clock that waiting moves; `loads` are the outcomes of loading."""

    def __init__(self, loads: list[Exception | None], waits: tuple[float, ...] = (1.0, 4.0, 16.0)):
        self.now = 100.0
        self.loads = loads
        self.told: list[object] = []
        self.seen: list[Restart | None] = []
        self.stop_at: float | None = None
        self.restarts = Restarts(BackOff(waits, 600.0), lambda: self.now)

    def run(self) -> bool:
        return self.restarts.run(FAILURE, lambda: self.told.append("let go"), self._ended_within, self._load, self.told.append)

    def _ended_within(self, seconds: float) -> bool:
        self.seen.append(self.restarts.now)
        self.now += seconds
        return self.stop_at is not None and self.now >= self.stop_at

    def _load(self) -> None:
        self.seen.append(self.restarts.now)
        if (outcome := self.loads.pop(0)) is not None:
            raise outcome


def test_it_waits_longer_each_time_and_tells_what_it_does() -> None:
    world = World([CapacityError("2 GiB are missing"), RuntimeError("a text of a user"), None])
    assert world.run()
    assert world.restarts.now is None
    assert world.told == ["let go", "rank_failed", "does_not_fit", "internal_error"]
    assert world.seen[0] == Restart(3, "node-b", "it was not heard for 60 s", 1, 3, 1.0)
    assert [(r.attempt, r.starts_in) for r in world.seen if r] == [(1, 1.0), (1, 0.0), (2, 4.0), (2, 0.0), (3, 16.0), (3, 0.0)]
    assert [r.failed for r in world.seen if r][2::2] == ["2 GiB are missing", "RuntimeError while the model was loaded"]
    assert "a text of a user" not in str(world.seen)
    assert world.seen[2] is not None
    assert world.seen[2].message == (
        "The engine starts again, since rank 3 on node-b failed: it was not heard for 60 s. Attempt 2 of 3 begins in 4.0 s. "
        "The one before it failed: 2 GiB are missing."
    )


def test_after_the_last_attempt_all_causes_are_told() -> None:
    world = World([None, RankError(3, "node-b", "no route"), CapacityError("2 GiB are missing")])
    assert world.run()
    with pytest.raises(EngineDeadError) as dead:
        world.run()
    assert dead.value.message == (
        "the engine failed 4 times within 600 s: 1. rank 3 on node-b failed: it was not heard for 60 s; 2. rank 3 on node-b failed: it was not "
        "heard for 60 s; 3. rank 3 on node-b failed: no route; 4. 2 GiB are missing"
    )
    assert world.told.count("let go") == 2
    assert world.restarts.now is None


def test_attempts_of_long_ago_count_no_more() -> None:
    world = World([None] * 10, waits=(1.0, 4.0))
    for _ in range(10):
        assert world.run()
        world.now += 400.0
    assert {r.starts_in for r in world.seen[::2] if r} == {1.0, 4.0}


def test_it_ends_when_nobody_wants_the_engine_any_more() -> None:
    world = World([CapacityError("no"), None])
    world.stop_at = 104.0
    assert not world.run()
    assert world.loads == [None]
    assert world.restarts.now is None
