"""Whether the engine moves: what tells a long step from one that never ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from headway.server.engine_port import StatusPort


@dataclass(frozen=True, slots=True)
class Progress:
    """`still_seconds`: since the last step that was seen, or since there was something to do, whichever is later."""

    steps: int
    still_seconds: float
    requests: int
    running: int
    waiting: int
    stalled: bool


class ProgressWatch:
    """Compares the engine's step counter between looks; somebody looks every now and then, not only when asked.

    Stalled: requests are there and no step has ended for more than `bound` seconds; a `bound` of 0 means never. An
    engine without requests, or one that somebody holds, is never stalled.
    """

    def __init__(self, bound: float, clock: Callable[[], float] = time.monotonic):
        self._bound = bound
        self._clock = clock
        self._steps = 0
        self._since = clock()

    def look(self, status: StatusPort) -> Progress:
        now = self._clock()
        if status.steps != self._steps or not status.requests or status.held:
            self._steps, self._since = status.steps, now
        still = now - self._since
        stalled = 0 < self._bound < still
        return Progress(status.steps, still, status.requests, status.running, status.waiting, stalled)
