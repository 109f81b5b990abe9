"""Rate limits: how many requests and tokens a caller may have in each second, minute, hour or day."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headway.router.config.document.document import Document
from headway.router.config.document.services import RateLimit, RateLimitMatch, RateLimitRule
from headway.router.listener.errors import LimitedError
from headway.router.request.identity import Identity

UNIT_SECONDS: Final[Mapping[str, int]] = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
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
        length = UNIT_SECONDS[rule.unit]
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
        day = now - UNIT_SECONDS["day"]
        kept = {place: window for place, window in self._windows.items() if window.start > day}
        self._windows = dict(list(kept.items())[-(_MOST_WINDOWS // 2) :])


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that was let in: `headers` tell what is left under the rule that leaves least, `windows` are charged with its tokens, `settle` tells
    those to the store that all routers share."""

    headers: Mapping[str, str] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    settle: Callable[[], Awaitable[None]] | None = None

    def charge(self, tokens: int) -> None:
        for window in self.windows:
            window.tokens += tokens


NOTHING: Final = Admitted()


def admit(rules: Sequence[RateLimitRule], windows: RateWindows, identity: Identity, model: str) -> Admitted:
    """Count a request under every rule that describes it, or none if one of them is used up. Tokens are known only after the answer: a request that
    comes while some are left may use more. Raises LimitedError."""
    if not rules:
        return NOTHING
    now, caller = windows.clock(), caller_named(identity)
    found = [(rule, windows.of(rule, caller, now)) for rule in rules if describes(rule.match, identity, model)]
    for rule, window in found:
        if rule.requests_per_unit is not None and window.requests >= rule.requests_per_unit:
            raise refusal(rule, window, now, rule.requests_per_unit, "requests")
        if rule.tokens_per_unit is not None and window.tokens >= rule.tokens_per_unit:
            raise refusal(rule, window, now, rule.tokens_per_unit, "tokens")
    for _, window in found:
        window.requests += 1
    return Admitted(headers_of(found, now), tuple(window for rule, window in found if rule.tokens_per_unit is not None))


def rate_limit_settings(document: Document) -> RateLimit:
    services = document.global_.services if document.global_ else None
    return (services.ratelimit if services else None) or RateLimit()


def compile_rate_limits(document: Document) -> tuple[RateLimitRule, ...]:
    return tuple(rule for provider in rate_limit_settings(document).providers or () for rule in provider.rules or ())


def caller_named(identity: Identity) -> str:
    """Whose count it is."""
    return identity.user or identity.key or identity.peer


def describes(match: RateLimitMatch, identity: Identity, model: str) -> bool:
    if (match.user or "") not in _ANYBODY and match.user not in (identity.user, identity.key):
        return False
    if (match.group or "") not in _ANYBODY and match.group not in identity.groups:
        return False
    return (match.model or "") in _ANYBODY or match.model == model


def headers_of(found: Sequence[tuple[RateLimitRule, Window]], now: float) -> Mapping[str, str]:
    counted = [(rule.requests_per_unit - window.requests, rule, window) for rule, window in found if rule.requests_per_unit is not None]
    if not counted:
        return {}
    left, rule, window = min(counted, key=lambda each: each[0])
    return _told(rule.requests_per_unit or 0, left, rule, window, now)


def refusal(rule: RateLimitRule, window: Window, now: float, most: int, what: str) -> LimitedError:
    headers = _told(most, 0, rule, window, now)
    return LimitedError(
        f'The limit "{rule.name}" of {most} {what} per {rule.unit} is used up', headers={**headers, "retry-after": headers["x-ratelimit-reset"]},
        fix=f"Try again in {headers['x-ratelimit-reset']} s.",
    )  # fmt: skip


def _told(most: int, left: int, rule: RateLimitRule, window: Window, now: float) -> dict[str, str]:
    reset = max(1, math.ceil(window.start + UNIT_SECONDS[rule.unit] - now))
    return {"x-ratelimit-limit": str(most), "x-ratelimit-remaining": str(max(0, left)), "x-ratelimit-reset": str(reset)}
