"""When an engine counts as stalled."""

from __future__ import annotations

from headway.server.progress import ProgressWatch
from tests.server.scripted_engine import Status


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_stalled_only_with_work_and_without_steps() -> None:
    clock = Clock()
    watch = ProgressWatch(10.0, clock)

    def look(after: float, steps: int, requests: int) -> tuple[bool, float]:
        clock.now += after
        seen = watch.look(Status("ready", steps=steps, requests=requests))
        return seen.stalled, seen.still_seconds

    assert look(1000, 0, 0) == (False, 0.0)  # idle for long
    assert look(5, 0, 1) == (False, 5.0)
    assert look(5, 0, 1) == (False, 10.0)
    assert look(0.1, 0, 1)[0] is True
    assert look(1, 1, 1) == (False, 0.0)  # the step ended after all
    assert look(11, 1, 2)[0] is True
    assert look(1, 1, 0) == (False, 0.0)  # the requests went away
    assert look(9, 1, 1) == (False, 9.0)


def test_zero_means_never() -> None:
    clock = Clock()
    watch = ProgressWatch(0.0, clock)
    clock.now += 1e9
    assert not watch.look(Status("ready", requests=3)).stalled
