"""Calendar periods of budgets, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeAlias

Per: TypeAlias = Literal["day", "week", "month", "total"]

_STARTS: Mapping[str, Callable[[date], date]] = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "total": lambda day: date.min,
}
_LENGTHS: Mapping[str, Callable[[date], date]] = {
    "day": lambda start: start + timedelta(days=1),
    "week": lambda start: start + timedelta(days=7),
    "month": lambda start: (start + timedelta(days=31)).replace(day=1),
}


def period_start(per: Per, today: date) -> date:
    """The first day of the period that holds `today`; weeks begin on Monday."""
    return _STARTS[per](today)


def period_end(per: Per, now: datetime) -> datetime | None:
    """When the period that holds `now` is over and the next one begins; None for one that never ends."""
    if per == "total":
        return None
    return datetime.combine(_LENGTHS[per](period_start(per, now.astimezone(UTC).date())), time(), UTC)
