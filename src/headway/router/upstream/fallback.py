"""The fallback policy: whether another candidate is asked when a model fails, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.decisions import FallbackOverride, FallbackPolicy, fallback_seconds
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.upstream.circuit import BreakerSettings

FALLBACK_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Fallback:
    """`attempts` is the number of models asked, the first one included; times are in seconds, None is without limit."""

    enabled: bool = False
    attempts: int = 3
    total: float | None = None
    per_attempt: float | None = None
    statuses: frozenset[int] = FALLBACK_STATUSES
    breaker: BreakerSettings | None = None


def fallback_of(
    document: Document, routing: RecipeRouting | None, override: FallbackOverride | None = None
) -> Fallback:
    """`global.router.fallback`, over it that of the recipe, over it that of the decision; each says only what it says."""
    router = document.global_.router if document.global_ else None
    layers: tuple[FallbackPolicy | FallbackOverride | None, ...] = (
        router.fallback if router else None,
        routing.fallback if routing else None,
        override,
    )
    given: dict[str, Any] = {}
    for layer in layers:
        if layer is not None:
            given.update(layer.model_dump(exclude_unset=True, exclude_none=True))
    changes: dict[str, Any] = {}
    for theirs, mine in (("enabled", "enabled"), ("max_attempts", "attempts")):
        if theirs in given:
            changes[mine] = given[theirs]
    if not changes.get("attempts", 1):  # 0 leaves the number as it is
        del changes["attempts"]
    for theirs, mine in (("total_timeout", "total"), ("per_attempt_timeout", "per_attempt")):
        if theirs in given:
            changes[mine] = fallback_seconds(given[theirs]) or None
    if "retryable_status_codes" in given:
        changes["statuses"] = frozenset(given["retryable_status_codes"])
    if "circuit_breaker" in given:
        changes["breaker"] = _breaker(given["circuit_breaker"])
    return Fallback(**changes)


def _breaker(given: Mapping[str, Any]) -> BreakerSettings | None:
    """None for 0 failures, which switches it off."""
    defaults = BreakerSettings()
    if given.get("consecutive_failures") == 0:
        return None
    return BreakerSettings(
        given.get("consecutive_failures", defaults.failures),
        fallback_seconds(given["cooldown_period"]) if "cooldown_period" in given else defaults.cooldown,
        given.get("half_open_probes") or defaults.probes,
    )
