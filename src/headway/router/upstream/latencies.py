"""How fast each provider model has been: the last observations, outliving generations."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, TypeAlias

Metric: TypeAlias = Literal["ttft", "tpot", "completion"]
KEPT = 256


class LatencyBook:
    """Seconds by provider model. `ttft` until the first bytes of a stream, `tpot` per token after them, `completion` of a whole answer."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Metric], deque[float]] = {}

    def note(self, model: str, metric: Metric, seconds: float) -> None:
        self._seen.setdefault((model, metric), deque(maxlen=KEPT)).append(seconds)

    def percentile(self, model: str, metric: Metric, percent: float) -> float | None:
        """The nearest-rank percentile, None without observations."""
        seen = self._seen.get((model, metric))
        if not seen:
            return None
        return sorted(seen)[max(0, math.ceil(len(seen) * percent / 100) - 1)]

    def count(self, model: str, metric: Metric) -> int:
        return len(self._seen.get((model, metric), ()))
