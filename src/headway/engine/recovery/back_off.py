"""BackOff: how long an engine waits before it is loaded again, and when it is given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SECONDS: Final = (0.5, 2.0, 8.0, 30.0, 60.0)
"""Before the first, second, ... attempt: long enough for a host to come back, short enough for a process that was killed."""
WINDOW_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class BackOff:
    """As many attempts as `seconds` has entries, within any `window` seconds. Attempts that are longer ago count no more, so that an engine
    that loses a rank now and then never ends because of it."""

    seconds: tuple[float, ...] = SECONDS
    window: float = WINDOW_SECONDS

    def recent(self, begun: Sequence[float], now: float) -> int:
        """How many of the attempts that began at these times count."""
        return sum(now - at < self.window for at in begun)

    def wait(self, begun: Sequence[float], now: float) -> float | None:
        """Seconds before the next attempt; None when there is none."""
        recent = self.recent(begun, now)
        return self.seconds[recent] if recent < len(self.seconds) else None
