"""The loader thread: models one after the other in their order, those that failed again after a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from headway.runtime.loading.load_failure import failure_reason, is_final
from headway.runtime.served_model import Readiness, ServedModel
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)
LONGEST_WAIT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Retries:
    """`attempts` in total; the wait before the second is `first_wait` seconds and doubles from then on."""

    attempts: int
    first_wait: float

    def wait_after(self, attempt: int) -> float | None:
        """Seconds before the next attempt when number `attempt` (from 1) has failed; None when there is none."""
        if attempt >= self.attempts:
            return None
        return min(LONGEST_WAIT_SECONDS, self.first_wait * 2.0 ** min(attempt - 1, 60))


class Clock(Protocol):
    """Monotonic time; `sleep` returns True when the process ends meanwhile."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> bool: ...


class RealClock:
    """`stop` wakes whoever sleeps."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> bool:
        return self._stopped.wait(seconds)

    def stop(self) -> None:
        self._stopped.set()


@dataclass(slots=True)
class _Waiting:
    model: ServedModel
    attempt: int = 1
    due: float = 0.0


def load_all(models: Sequence[ServedModel], load: Callable[[ServedModel], None], retries: Retries, clock: Clock) -> None:
    """Until every model is ready or has failed for good, or the clock says that the process ends.

    While one model waits for its next attempt the others are loaded. Of those that are due, the first in the configured
    order is next.
    """
    waiting = [_Waiting(model, due=clock.now()) for model in models]
    while waiting:
        now = clock.now()
        ready = [each for each in waiting if each.due <= now]
        if not ready:
            if clock.sleep(min(each.due for each in waiting) - now):
                return
            continue
        current = ready[0]
        if _attempt(current, load, retries, clock):
            waiting.remove(current)


def _attempt(current: _Waiting, load: Callable[[ServedModel], None], retries: Retries, clock: Clock) -> bool:
    """True when nothing more is to be done for the model."""
    model = current.model
    try:
        load(model)
        return True
    except Exception as error:  # whatever a package, plug-in or driver raises: it is this model's failure alone
        reason = failure_reason(error)
        wait = None if is_final(error) else retries.wait_after(current.attempt)
        _log.error("%s failed to load: %s", model.name, reason)
        _log.debug("%s", describe_defect(error))
    model.running = None
    if wait is None:
        model.readiness = Readiness("failed", reason)
        return True
    current.attempt += 1
    current.due = clock.now() + wait
    model.readiness = Readiness("loading", f"retrying after {reason} (attempt {current.attempt} of {retries.attempts})")
    return False
