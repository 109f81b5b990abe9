"""Restarts: loading an engine again and again, with pauses, until it is there or given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headway.engine.recovery.back_off import BackOff
from headway.engine.recovery.restart import Restart
from headway.errors import EngineDeadError, HeadwayError, RankError
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    begun: float  # by the clock
    because: str  # what failed, so that it was needed


@dataclass(frozen=True, slots=True)
class _Now:
    shown: Restart  # but for `starts_in`
    due: float


class Restarts:
    """Of one engine, over its life. Its thread calls `run`; any thread reads `now`."""

    def __init__(self, back_off: BackOff | None = None, clock: Callable[[], float] = time.monotonic):
        self._back_off = back_off or BackOff()
        self._clock = clock
        self._attempts: list[_Attempt] = []
        self._now: _Now | None = None

    @property
    def now(self) -> Restart | None:
        """What is going on; None while the engine is well, and when it was given up."""
        now = self._now
        return None if now is None else replace(now.shown, starts_in=max(0.0, now.due - self._clock()))

    def run(
        self,
        failure: RankError,
        let_go: Callable[[], None],
        ended_within: Callable[[float], bool],
        load: Callable[[], None],
        on_attempt: Callable[[str], None],
    ) -> bool:
        """`let_go` of what failed, then wait and load until loading succeeds. `ended_within` waits so many seconds, and is true at once when nobody wants the engine
        any more; then this is False. `on_attempt` hears the reason of each attempt that begins.

        Raises EngineDeadError with the causes of all attempts when there were as many as there may be.
        """
        because, reason, failed = _cause(failure), failure.reason, None
        try:
            seconds = self._plan(failure, failed)
            let_go()
            while seconds is not None:
                _log.warning("%s; the engine is loaded again in %g s", because, seconds)
                if ended_within(seconds):
                    return False
                self._attempts.append(_Attempt(self._clock(), because))
                on_attempt(reason)
                try:
                    load()
                    return True
                except HeadwayError as error:
                    because, reason = _cause(error), error.reason
                except Exception as error:
                    _log.error("loading the engine again failed with a defect: %s", describe_defect(error))
                    because, reason = f"{type(error).__name__} while the model was loaded", "internal_error"
                failed = because
                seconds = self._plan(failure, failed)
            raise EngineDeadError(self._story(because))
        finally:
            self._now = None

    def _plan(self, failure: RankError, failed: str | None) -> float | None:
        """Seconds until the next attempt, which is shown from now on."""
        now = self._clock()
        self._attempts = [attempt for attempt in self._attempts if now - attempt.begun < self._back_off.window]
        seconds = self._back_off.wait([attempt.begun for attempt in self._attempts], now)
        if seconds is None:
            return None
        number, most = len(self._attempts) + 1, len(self._back_off.seconds)
        self._now = _Now(Restart(failure.rank, failure.host, failure.why, number, most, seconds, failed), now + seconds)
        return seconds

    def _story(self, last: str) -> str:
        causes = [*(attempt.because for attempt in self._attempts), last]
        listed = "; ".join(f"{number}. {cause}" for number, cause in enumerate(causes, 1))
        return f"the engine failed {len(causes)} times within {self._back_off.window:g} s: {listed}"


def _cause(error: HeadwayError) -> str:
    """Without an end, for a longer sentence."""
    if isinstance(error, RankError):
        return f"rank {error.rank} on {error.host} failed: {error.why}".rstrip(".")
    return error.message.rstrip(".")
