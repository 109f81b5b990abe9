"""What is known of each backend's health and load; outlives generations, so that a reload forgets neither."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class BackendState:
    """`healthy` is the word of active checks, `ejected_until` that of consecutive failures (seconds of `time.monotonic`). `failing` is whether the
    last try failed: the log tells when that changes, not each failure. At most `most` requests are in flight, `waiting` are those that want a place."""

    in_flight: int = 0
    most: int = sys.maxsize
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    failures_in_row: int = 0
    ejections: int = 0
    ejected_until: float = 0.0
    healthy: bool = True
    failing: bool = False

    @property
    def has_place(self) -> bool:
        return self.in_flight < self.most and not self.waiting

    def ejected(self, now: float) -> bool:
        return now < self.ejected_until


class BackendStates:
    """By the backend's identity."""

    def __init__(self) -> None:
        self._states: dict[str, BackendState] = {}

    def of(self, identity: str) -> BackendState:
        return self._states.setdefault(identity, BackendState())

    def keep_only(self, identities: Iterable[str]) -> None:
        """Forget backends that no generation has any more, unless a request is still with them."""
        kept = set(identities)
        self._states = {key: state for key, state in self._states.items() if key in kept or state.in_flight}


def note_success(state: BackendState) -> None:
    state.failures_in_row = 0
    state.ejections = max(0, state.ejections - 1)


def note_failure(
    state: BackendState, among: list[BackendState], threshold: int, seconds: float, max_percent: int
) -> bool:
    """Count one failure (5xx, or no answer); True when it ejects the backend, for `seconds` times the number of its ejections.

    At most `max_percent` of the backends (`among`, with this one) are ejected at a time; of two or more, one always may be.
    """
    state.failures_in_row += 1
    now = time.monotonic()
    if threshold <= 0 or state.failures_in_row < threshold or state.ejected(now):
        return False
    allowed = max(len(among) * max_percent // 100, 1 if len(among) > 1 and max_percent > 0 else 0)
    if sum(other.ejected(now) for other in among) >= allowed:
        return False
    state.ejections += 1
    state.failures_in_row = 0
    state.ejected_until = now + seconds * state.ejections
    return True
