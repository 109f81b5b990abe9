"""AtMostEvery: a filter that lets one record of each place in the code through per period, and counts the rest."""

from __future__ import annotations

import logging
import threading
import time


class AtMostEvery(logging.Filter):
    """For libraries that complain once per event, such as an exporter whose collector is down."""

    def __init__(self, seconds: float):
        super().__init__()
        self._seconds = seconds
        self._lock = threading.Lock()
        self._last: dict[tuple[str, int], float] = {}
        self._held: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        now = time.monotonic()
        with self._lock:
            if now - self._last.get(place, -self._seconds) < self._seconds:
                self._held[place] = self._held.get(place, 0) + 1
                return False
            self._last[place] = now
            held = self._held.pop(place, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} ({held} more like it since)", ()
        return True
