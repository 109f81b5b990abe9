"""Rate limits: how many requests and tokens a caller may have in each second, minute, hour or day."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headway.router.config.document.document import Document
from headway.router.config.document.services import RateLimitMatch, RateLimitRule
from headway.router.listener.errors import LimitedError
from headway.router.request.identity import Identity

_SECONDS: Final[Mapping[str, int]] = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_ANYBODY = ("", "*")
_MOST_WINDOWS = 100_000


@dataclass(slots=True)
class Window:
    """What one caller used under one rule since `start`, in seconds since the epoch."""

    start: int
    requests: int = 0
    tokens: int = 0


class RateWindows:
    """Windows begin at whole units of the clock and outlive reloads. One event loop."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._windows: dict[tuple[str, str], Window] = {}

    def of(self, rule: RateLimitRule, caller: str, now: float) -> Window:
        length = _SECONDS[rule.unit]
        start = int(now) // length * length
        place = rule.name, caller
        window = self._windows.get(place)
        if window is None or window.start != start:
            if len(self._windows) >= _MOST_WINDOWS:
                self._forget(now)
            window = self._windows[place] = Window(start)
        return window

    def _forget(self, now: float) -> None:
        """Drop windows that are over; while there are too many that are not, the oldest of them: their callers start anew."""
        day = now - _SECONDS["day"]
        kept = {place: window for place, window in self._windows.items() if window.start > day}
        self._windows = dict(list(kept.items())[-(_MOST_WINDOWS // 2) :])


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that was let in: `headers` tell what is left under the rule that leaves least, `windows` are charged with its tokens."""

    headers: Mapping[str, str] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()

    def charge(self, tokens: int) -> None:
        for window in self.windows:
            window.tokens += tokens


NOTHING: Final = Admitted()


def admit(rules: Sequence[RateLimitRule], windows: RateWindows, identity: Identity, model: str) -> Admitted:
    """Count a request under every rule that describes it, or none if one of them is used up. Tokens are known only after the answer: a request that
    comes while some are left may use more. Raises LimitedError."""
    if not rules:
        return NOTHING
    now, caller = windows.clock(), identity.user or identity.key or identity.peer
    found = [(rule, windows.of(rule, caller, now)) for rule in rules if _describes(rule.match, identity, model)]
    for rule, window in found:
        if rule.requests_per_unit is not None and window.requests >= rule.requests_per_unit:
            raise _limited(rule, window, now, rule.requests_per_unit, "requests")
        if rule.tokens_per_unit is not None and window.tokens >= rule.tokens_per_unit:
            raise _limited(rule, window, now, rule.tokens_per_unit, "tokens")
    for _, window in found:
        window.requests += 1
    return Admitted(_headers(found, now), tuple(window for rule, window in found if rule.tokens_per_unit is not None))


def compile_rate_limits(document: Document) -> tuple[RateLimitRule, ...]:
    services = document.global_.services if document.global_ else None
    limits = services.ratelimit if services else None
    return tuple(rule for provider in (limits and limits.providers) or () for rule in provider.rules or ())


def _describes(match: RateLimitMatch, identity: Identity, model: str) -> bool:
    if (match.user or "") not in _ANYBODY and match.user not in (identity.user, identity.key):
        return False
    if (match.group or "") not in _ANYBODY and match.group not in identity.groups:
        return False
    return (match.model or "") in _ANYBODY or match.model == model


def _headers(found: Sequence[tuple[RateLimitRule, Window]], now: float) -> Mapping[str, str]:
    counted = [(rule.requests_per_unit - window.requests, rule, window) for rule, window in found if rule.requests_per_unit is not None]
    if not counted:
        return {}
    left, rule, window = min(counted, key=lambda each: each[0])
    return _told(rule.requests_per_unit or 0, left, rule, window, now)


def _limited(rule: RateLimitRule, window: Window, now: float, most: int, what: str) -> LimitedError:
    headers = _told(most, 0, rule, window, now)
    return LimitedError(
        f'The limit "{rule.name}" of {most} {what} per {rule.unit} is used up', headers={**headers, "retry-after": headers["x-ratelimit-reset"]},
        fix=f"Try again in {headers['x-ratelimit-reset']} s.",
    )  # fmt: skip


def _told(most: int, left: int, rule: RateLimitRule, window: Window, now: float) -> dict[str, str]:
    reset = max(1, math.ceil(window.start + _SECONDS[rule.unit] - now))
    return {"x-ratelimit-limit": str(most), "x-ratelimit-remaining": str(max(0, left)), "x-ratelimit-reset": str(reset)}
