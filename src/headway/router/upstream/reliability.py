"""Reliability: how long a provider model is waited for, and what is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.router.catalog.retry_conditions import FAILED_CONNECTIONS, retry_words
from headway.router.catalog.retry_conditions import RETRIED_STATUSES as STATUSES_OF
from headway.router.config.document.decisions import DecisionReliability
from headway.router.config.document.providers import ProviderReliability
from headway.router.config.duration import seconds

RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Reliability:
    """Times are in seconds; None means no such limit.

    `retries` None is the default of a model that says nothing: after a failure to connect, when nothing was sent, each other backend is
    tried once. A number bounds how often a request is sent again, for every reason together: connections that fail or close before the
    answer begins (`on_connect`), tries that pass `per_try`, answers with one of `statuses`. `total` covers all tries and their waits, and the
    reading of an answer in one piece; a stream only until it begins. `per_try` and `first_byte` end with the first byte of an answer's
    body, `idle` is the longest silence after that. A backend has at most `max_in_flight` requests at a time; `max_waiting` more wait for it, each for
    at most `max_wait`.
    """

    least_request: bool = False
    retries: int | None = None
    on_connect: bool = True
    statuses: frozenset[int] = RETRIED_STATUSES
    connect: float = 5.0
    total: float | None = None
    per_try: float | None = None
    first_byte: float | None = 300.0
    idle: float | None = 300.0
    back_off_base: float = 0.025
    back_off_max: float = 0.25
    retry_after_max: float = 10.0
    budget_percent: float | None = None
    budget_minimum: int = 3
    consecutive_5xx: int = 0
    ejection_time: float = 30.0
    max_ejection_percent: int = 50
    health_path: str | None = None
    health_interval: float = 10.0
    health_timeout: float = 2.0
    max_in_flight: int = 512
    max_waiting: int = 512
    max_wait: float = 30.0


_TIMES: Mapping[str, str] = {
    "base_ejection_time": "ejection_time",
    "health_check_interval": "health_interval",
    "health_check_timeout": "health_timeout",
    "connect_timeout": "connect",
    "retry_back_off_base": "back_off_base",
    "retry_back_off_max": "back_off_max",
    "retry_after_max": "retry_after_max",
    "max_wait": "max_wait",
}
_LIMITS: Mapping[str, str] = {
    "total_timeout": "total",
    "idle_timeout": "idle",
    "per_try_timeout": "per_try",
    "first_byte_timeout": "first_byte",
}
"""Times of which 0 means that there is no limit."""

_AS_THEY_ARE: Mapping[str, str] = {
    "retry_count": "retries",
    "consecutive_5xx": "consecutive_5xx",
    "max_ejection_percent": "max_ejection_percent",
    "health_check_path": "health_path",
    "max_in_flight": "max_in_flight",
    "max_waiting": "max_waiting",
    "retry_budget_percent": "budget_percent",
    "retry_budget_min_concurrency": "budget_minimum",
}

def reliability_of(
    settings: ProviderReliability | DecisionReliability | None, under: Reliability | None = None
) -> Reliability:
    """What `settings` say. A decision's lie `under` the provider model's: its conditions of retries are added to those."""
    base = under or Reliability()
    if settings is None:
        return base
    given: dict[str, Any] = settings.model_dump(exclude_none=True)
    changes: dict[str, Any] = {mine: seconds(given[theirs]) for theirs, mine in _TIMES.items() if theirs in given}
    changes |= {mine: seconds(given[theirs]) or None for theirs, mine in _LIMITS.items() if theirs in given}
    changes |= {mine: given[theirs] for theirs, mine in _AS_THEY_ARE.items() if theirs in given}
    if "lb_policy" in given:
        changes["least_request"] = given["lb_policy"] == "least_request"
    statuses = frozenset(given.get("retriable_status_codes", ()))
    words = retry_words(given.get("retry_on"))
    if words:
        changes["on_connect"] = (
            bool(words & FAILED_CONNECTIONS) or (under is not None and base.on_connect)
        )
        statuses = statuses.union(*(STATUSES_OF.get(word, frozenset()) for word in words))
    if words or statuses:
        changes["statuses"] = statuses if under is None else base.statuses | statuses
    return replace(base, **changes)
