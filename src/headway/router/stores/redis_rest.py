"""Rest: when Redis is left alone after a failure, and when it is tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headway.router.metrics.registry import RouterMetrics

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0  # seconds


class Rest:
    """After a failure nothing is tried for a pause that doubles up to 15 s: one try in each pause is enough to find out. Failures of what was under way
    together count once. `store` is a bounded word for metrics and the log, which gets one line when Redis goes and one when it is back.

    Any thread may call; two that call together may log twice.
    """

    def __init__(self, store: str = "", metrics: RouterMetrics | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._metrics, self._clock = store, metrics, clock
        self._pause, self._until = _FIRST_PAUSE, 0.0
        self.trouble: str | None = None
        self._is_up: bool | None = None  # as the metric says

    @property
    def over(self) -> bool:
        return self._clock() >= self._until

    def refused(self) -> None:
        """Something that needed Redis went without it, during a pause."""
        if self._metrics is not None:
            self._metrics.count("headway_shared_store_failures", self._store)

    def failed(self, error: BaseException) -> None:
        self.refused()
        now = self._clock()
        if self.trouble is None:
            _LOG.warning("Redis does not answer%s: %s", self._named, type(error).__name__)
        self._told(False)
        self.trouble = f"Redis does not answer: {type(error).__name__}"
        if now >= self._until:
            self._until = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def worked(self) -> None:
        if self.trouble is not None:
            _LOG.info("Redis answers again%s", self._named)
        self._told(True)
        self._pause, self.trouble = _FIRST_PAUSE, None

    @property
    def _named(self) -> str:
        return f" ({self._store})" if self._store else ""

    def _told(self, up: bool) -> None:
        if self._metrics is not None and self._is_up is not up:
            self._is_up = up
            self._metrics.set("headway_shared_store_up", float(up), self._store)
