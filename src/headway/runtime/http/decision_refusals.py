"""How errors look on the routes of decisions: in the form of System One, of the worker, and of OpenAI.

System One clients read `detail`, those of the worker `error.code`, those of OpenAI `error.type` and `error.param`. One body
carries what its form needs and never contradicts itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import HeadwayError
from headway.runtime.http.call import Fields, Refuse
from headway.runtime.http.refusal import Refusal, code_of, headers_of, message_of, worker_refusal
from headway.wire.decision_body import is_runtime
from headway.wire.openai_decisions import is_openai
from headway.wire.violations import SchemaError, Violation

_UNREADABLE: Final = frozenset({"body_invalid", "body_too_deep"})
_VALIDATION_STATUS: Final = 422
_TOO_LONG: Final = ("context_length_exceeded", 413, "request_too_large")  # reason, status, code
_MAX_VIOLATIONS: Final = 50
_ERROR_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error",
}  # fmt: skip
_OPENAI_TYPES: Final[Mapping[int, str]] = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}


def system_one_refusal(error: BaseException) -> Refusal:
    """422 with `detail[]` for a body that breaks the protocol, `detail.error_type` and `detail.message` for the rest."""
    plain = detailed_refusal(error)
    return plain if not _violations(error) else Refusal(_VALIDATION_STATUS, plain.body, plain.headers)


def detailed_refusal(error: BaseException) -> Refusal:
    """The worker's own form with its own status, and `detail` beside it."""
    plain = worker_refusal(error)
    reason, status, code = _TOO_LONG
    if isinstance(error, HeadwayError) and error.reason == reason:
        plain = Refusal(status, {"error": {"code": code, "message": message_of(error)}}, plain.headers)
    violations = _violations(error)
    detail: Any = [_entry(violation) for violation in violations[:_MAX_VIOLATIONS]]
    if not violations:
        detail = {"error_type": _ERROR_TYPES.get(plain.status, "api_usage_error"), "message": message_of(error)}
    return Refusal(plain.status, {**plain.body, "detail": detail}, plain.headers)


def openai_refusal(error: BaseException) -> Refusal:
    """`{"error": {"message", "type", "param", "code"}}`."""
    status, code = code_of(error)
    param = error.param if isinstance(error, HeadwayError) else None
    kind = _OPENAI_TYPES.get(status, "invalid_request_error")
    return Refusal(status, {"error": {"message": message_of(error), "type": kind, "param": param, "code": code}}, headers_of(error))


def system_one_style(fields: Fields | None) -> Refuse:
    """For `/v1/systemone`."""
    return detailed_refusal if fields is not None and is_runtime(fields) else system_one_refusal


def batch_style(fields: Fields | None) -> Refuse:
    """For `/v1/systemone/batch`, whose `states` are an array."""
    return system_one_style(None if fields is None else {"questions": fields.get("questions")})


def decisions_style(fields: Fields | None) -> Refuse:
    """For `/v1/decisions`, where the body tells who speaks; a body that cannot be read gets what all of them understand."""
    if fields is None:
        return _anybodys_refusal
    return openai_refusal if is_openai(fields) else system_one_style(fields)


def _anybodys_refusal(error: BaseException) -> Refusal:
    refusal, detail = openai_refusal(error), detailed_refusal(error).body["detail"]
    return Refusal(refusal.status, {**refusal.body, "detail": detail}, refusal.headers)


def _violations(error: BaseException) -> tuple[Violation, ...]:
    if isinstance(error, SchemaError):
        return error.violations
    if isinstance(error, HeadwayError) and error.reason in _UNREADABLE:
        return (Violation(("body",), message_of(error), "json_invalid"),)
    return ()


def _entry(violation: Violation) -> dict[str, Any]:
    return {"type": violation.kind, "loc": list(violation.loc), "msg": violation.message}
