"""LatencyHistogram: millions of gaps between tokens in bounded memory, at a resolution of one percent."""

from __future__ import annotations

import math
from typing import Final

_PER_E: Final = 1 / math.log(1.01)  # bins: each upper edge is 1.01 times the lower
_LEAST: Final = 1e-7  # seconds; everything below is in the first bin
_BINS: Final = 3500  # up to 1.3e8 seconds


class LatencyHistogram:
    """Counts per bin. A percentile is off by at most half a bin, 0.5 %."""

    def __init__(self) -> None:
        self.counts = [0] * _BINS
        self.total = 0
        self.sum = 0.0

    def add(self, seconds: float, count: int) -> None:
        self.counts[_bin(seconds)] += count
        self.total += count
        self.sum += seconds * count

    def add_rising(self, first: float, slope: float, steps: int, count: int) -> None:
        """`count` gaps of each of `first`, `first + slope`, ...: `steps` lengths."""
        while steps > 0:
            within = steps if slope <= 0 else min(steps, int(0.01 * max(first, _LEAST) / slope) + 1)
            self.add(first + slope * (within - 1) / 2, count * within)
            first += slope * within
            steps -= within

    def percentile(self, percent: float) -> float:
        """NaN without any gap."""
        if self.total == 0:
            return math.nan
        wanted = max(1.0, self.total * percent / 100)
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if seen >= wanted:
                return _LEAST * math.exp((index - 0.5) / _PER_E) if index else _LEAST
        raise AssertionError("counts and total disagree")

    def share_up_to(self, seconds: float) -> float:
        """Of the gaps, those not longer than `seconds`; 1 without any."""
        return sum(self.counts[: _bin(seconds) + 1]) / self.total if self.total else 1.0

    @property
    def mean(self) -> float:
        return self.sum / self.total if self.total else math.nan


def _bin(seconds: float) -> int:
    return 0 if seconds <= _LEAST else min(_BINS - 1, 1 + int(math.log(seconds / _LEAST) * _PER_E))
