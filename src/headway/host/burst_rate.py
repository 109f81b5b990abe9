"""The best rate of many short bursts of work, and whether the machine was quiet enough to believe it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

_WINDOWS: Final = 4
_PAUSE: Final = 0.03  # between windows: time for the scheduler to put threads on other cores
_QUIET: Final = 0.9


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds of the wall and of CPU time of all threads; `sleep` waits."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Rate:
    """`best` per second. `quiet`: in some window the threads had their cores nearly to themselves."""

    best: float
    quiet: bool


def burst_rate(bursts: Sequence[tuple[Callable[[], Any], float]], threads: int, seconds: float, clocks: Clocks | None = None) -> Rate:
    """Run (burst, work) in turn for windows of `seconds`, each burst at least once in a window, until a window was quiet, at most four.

    The best burst counts: other load makes a burst slower, nothing makes it faster than the machine. A window was quiet when the
    process got 90 % of `threads` cores.
    """
    clocks = clocks or Clocks()
    best, quiet = 0.0, False
    for window in range(_WINDOWS):
        if window:
            clocks.sleep(_PAUSE)
        began, used, place = clocks.wall(), clocks.cpu(), 0
        while place < len(bursts) or clocks.wall() < began + seconds:
            burst, work = bursts[place % len(bursts)]
            started = clocks.wall()
            burst()
            best = max(best, work / max(clocks.wall() - started, 1e-9))
            place += 1
        quiet = clocks.cpu() - used >= _QUIET * threads * (clocks.wall() - began)
        if quiet:
            break
    return Rate(best, quiet)
