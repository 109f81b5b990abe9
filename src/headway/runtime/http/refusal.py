"""How errors leave the worker: reason -> status and code in one table, and the error object of its own routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headway.errors import HeadwayError
from headway.wire.errors import scrub
from headway.wire.strict_json import dumps


class Code(NamedTuple):
    """How a reason looks over HTTP."""

    status: int
    code: str


CODES: Mapping[str, Code] = {
    "invalid_request": Code(400, "invalid_request"),
    "body_invalid": Code(400, "invalid_request"),
    "body_too_deep": Code(400, "invalid_request"),
    "head_too_large": Code(400, "invalid_request"),
    "not_built": Code(400, "invalid_request"),
    "unauthorized": Code(401, "unauthorized"),
    "not_found": Code(404, "invalid_request"),
    "route_not_found": Code(404, "invalid_request"),
    "model_not_found": Code(404, "model_not_found"),
    "method_not_allowed": Code(405, "invalid_request"),
    "request_timeout": Code(408, "invalid_request"),
    "body_too_large": Code(413, "request_too_large"),
    "media_type_unsupported": Code(415, "invalid_request"),
    "unsupported_surface": Code(422, "unsupported_surface"),
    "queue_full": Code(429, "overloaded"),
    "internal_error": Code(500, "internal_error"),
    "step_failed": Code(500, "internal_error"),
    "loading": Code(503, "not_ready"),
    "shutting_down": Code(503, "not_ready"),
    "too_many_connections": Code(503, "not_ready"),
}  # fmt: skip
RETRY_AFTER_SECONDS: Mapping[int, int] = {429: 1, 503: 2}
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that failed: body as JSON value, and headers beside the usual ones."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def code_of(error: BaseException) -> Code:
    """The code of the error's own reason, else of the nearest class in the error tree that the table knows."""
    if isinstance(error, HeadwayError):
        for reason in (error.reason, *(vars(kind).get("reason") for kind in type(error).__mro__)):
            if reason in CODES:
                return CODES[str(reason)]
    return CODES["internal_error"]


def message_of(error: BaseException) -> str:
    """What a client may read. What is no HeadwayError is a defect: its text stays in the log."""
    if not isinstance(error, HeadwayError):
        return "Internal error. The server's log has the details."
    message = scrub(error.message) if code_of(error).status == 500 else error.message
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 3] + "..."


def headers_of(error: BaseException) -> dict[str, str]:
    status = code_of(error).status
    headers = {}
    if status in RETRY_AFTER_SECONDS:
        headers["retry-after"] = str(RETRY_AFTER_SECONDS[status])
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, HeadwayError) and error.reason in ("body_too_large", "request_timeout"):
        headers["connection"] = "close"  # the rest of the body is not read
    return headers


def worker_refusal(error: BaseException) -> Refusal:
    """`{"error": {"code", "message"}}`."""
    status, code = code_of(error)
    return Refusal(status, {"error": {"code": code, "message": message_of(error)}}, headers_of(error))


def rendered(error: HeadwayError) -> tuple[int, bytes]:
    """Status and body of what is refused before the application sees it."""
    refusal = worker_refusal(error)
    return refusal.status, dumps(refusal.body)
