"""What is wrong with a call of the decision routes, as their clients read it: `detail` of System One, types of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headway.errors import HeadwayError
from headway.wire.violations import SchemaError, Violation

VALIDATION_STATUS: Final = 422
TOO_LONG_STATUS: Final = 413
TOO_LONG: Final = "context_length_exceeded"
"""The reason of a prompt over the model's limit; System One knows it as a request that is too large."""
_UNREADABLE: Final = frozenset({"body_invalid", "body_too_deep"})
_MAX_VIOLATIONS: Final = 50
_ERROR_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error",
}  # fmt: skip
_OPENAI_TYPES: Final[Mapping[int, str]] = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}


def violations_of(error: BaseException, message: str) -> tuple[Violation, ...]:
    """Those of a body that breaks the protocol; a body that is no JSON breaks it in one place. `message`: what a client may read of it."""
    if isinstance(error, SchemaError):
        return error.violations
    if isinstance(error, HeadwayError) and error.reason in _UNREADABLE:
        return (Violation(("body",), message, "json_invalid"),)
    return ()


def detail_of(violations: Sequence[Violation], status: int, message: str) -> Any:
    """`detail[]` for a body that breaks the protocol, `detail.error_type` and `detail.message` for the rest."""
    if violations:
        return [{"type": each.kind, "loc": list(each.loc), "msg": each.message} for each in violations[:_MAX_VIOLATIONS]]
    return {"error_type": _ERROR_TYPES.get(status, "api_usage_error"), "message": message}


def openai_type(status: int) -> str:
    return _OPENAI_TYPES.get(status, "invalid_request_error")
