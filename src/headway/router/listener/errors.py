"""Errors of the public address."""

from __future__ import annotations

from collections.abc import Mapping

from headway.errors import HeadwayError


class ModelNotAllowedError(HeadwayError):
    """The listener or the key does not grant the model."""

    reason = "model_not_allowed"


class LimitedError(HeadwayError):
    """Too much was asked for in some time. `headers` tell how much there is, and when there is more."""

    reason = "rate_limited"

    def __init__(self, message: str, *, headers: Mapping[str, str], reason: str | None = None, fix: str | None = None):
        super().__init__(message, reason=reason, fix=fix)
        self.headers = headers


class BudgetExceededError(LimitedError):
    """The key has spent its budget."""

    reason = "budget_exceeded"


class MethodNotAllowedError(HeadwayError):
    """The route exists, but not for this method."""

    reason = "method_not_allowed"

    def __init__(self, path: str, method: str, allowed: str):
        super().__init__(f"{path[:200]} takes {allowed}, not {method[:20]}")
        self.headers = {"allow": allowed}
