"""When a request is sent again to the same model: a pure choice from what happened."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from headway.router.upstream.exchange import TryError
from headway.router.upstream.reliability import Reliability

_FREE_RESENDS = 1


@dataclass(slots=True)
class Load:
    """Requests of one provider model that are under way, and how many of them are being repeated."""

    active: int = 0
    repeating: int = 0


class Repeats:
    """Of one request, from its first try to the end of its last: it counts as repeating from its first repeat on."""

    def __init__(self, load: Load):
        self._load = load
        self._counted = False

    def __enter__(self) -> Repeats:
        self._load.active += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._load.active -= 1
        self._load.repeating -= self._counted

    def allowed(self, reliability: Reliability) -> bool:
        """Whether the budget has room for this request beside the others that repeat."""
        if reliability.budget_percent is None:
            return True
        others = self._load.repeating - self._counted
        return others < max(reliability.budget_minimum, self._load.active * reliability.budget_percent / 100)

    def begin(self) -> None:
        self._load.repeating += not self._counted
        self._counted = True


def repeats(reliability: Reliability, failure: TryError | int, used: int, untried: bool) -> bool:
    """`failure` is how the try ended (an error, or an HTTP status), `used` the number of repeats so far.

    A model without `retry_count` gets each other backend once after a failed connection, and one more send when a connection
    closed before the answer began: a kept connection may have been closed at that moment, and a completion has no side effects.
    """
    if isinstance(failure, TryError) and failure.busy:  # waiting again at the end of the same queue would help nobody
        return untried and (reliability.retries is None or used < reliability.retries)
    if reliability.retries is None:
        if isinstance(failure, int):
            return False
        return untried if not failure.sent else failure.outcome == "closed" and used < _FREE_RESENDS
    if used >= reliability.retries:
        return False
    if isinstance(failure, int):
        return failure in reliability.statuses
    if not failure.sent or failure.outcome == "closed":
        return reliability.on_connect
    return failure.outcome == "first_byte_timeout" and reliability.per_try is not None


def wait_before(
    reliability: Reliability, failure: TryError | int, used: int, headers: Mapping[str, str], elsewhere: bool
) -> float | None:
    """Seconds to wait before the next try; None when the backend asks for more than `retry_after_max`.

    A backend that was not tried yet is asked at once. Otherwise `Retry-After` counts, else a random part of a back-off that doubles.
    """
    if elsewhere:
        return 0.0
    if isinstance(failure, int):
        asked = retry_after(headers)
        if asked is not None:
            return asked if asked <= reliability.retry_after_max else None
    return random.uniform(0.5, 1.0) * min(reliability.back_off_max, reliability.back_off_base * 2.0**used)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; the header holds a number, or a date."""
    text = headers.get("retry-after")
    if not text:
        return None
    try:
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass  # a date, or nothing that is meant
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
