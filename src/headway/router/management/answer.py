"""What management endpoints return and raise, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.types import Send

from headway.errors import HeadwayError
from headway.wire.errors import reason_of, scrub, shape_of

_LONGEST_MESSAGE = 4000


@dataclass(slots=True)
class Answer:
    """`body` is JSON unless it is bytes of `content_type`."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)


class ManagementError(HeadwayError):
    """A refusal of the management address. `code` is upper-case, as its clients know it; `details` go beside code and message."""

    reason = "invalid_request"

    def __init__(self, code: str, message: str, status: int = 400, *, fix: str | None = None, details: Mapping[str, Any] | None = None):
        super().__init__(message, fix=fix)
        self.code, self.status, self.details = code, status, details or {}


# reason of an error of the router -> (status, code)
_KNOWN: Mapping[str, tuple[int, str]] = {
    "body_invalid": (400, "INVALID_INPUT"),
    "body_too_deep": (400, "INVALID_INPUT"),
    "body_too_large": (413, "INPUT_TOO_LARGE"),
    "request_timeout": (408, "REQUEST_TIMEOUT"),
    "invalid_request": (400, "INVALID_INPUT"),
    "not_ready": (503, "SERVICE_UNAVAILABLE"),
    "model_not_found": (400, "INVALID_ROUTING_MODEL"),
    "model_not_available": (400, "INVALID_ROUTING_MODEL"),
    "model_required": (400, "INVALID_ROUTING_MODEL"),
    "unauthorized": (401, "UNAUTHORIZED"),
    "forbidden": (403, "FORBIDDEN"),
    "not_found": (404, "NOT_FOUND"),
    "schema_unknown": (404, "NOT_FOUND"),
    "route_not_found": (404, "NOT_FOUND"),
    "method_not_allowed": (405, "METHOD_NOT_ALLOWED"),
    "config_rejected": (400, "CONFIG_VALIDATION_ERROR"),
    "invalid_config": (400, "CONFIG_VALIDATION_ERROR"),
    "shutting_down": (503, "SERVICE_UNAVAILABLE"),
    "ingestion_failed": (422, "INGESTION_FAILED"),
    "idempotency_conflict": (409, "CONFLICT"),
    "decision_unresolved": (503, "DECISION_UNRESOLVED"),
}


def refusal(error: HeadwayError) -> Answer:
    """`{"error": {"code", "message", "timestamp"}}`. What the public address would refuse too (a preview's request) has its status there; an error of
    which neither table knows anything is 500."""
    if isinstance(error, ManagementError):
        status, code, details = error.status, error.code, dict(error.details)
    else:
        status, code = _KNOWN.get(error.reason) or _public(error)
        details = {}
    message = scrub(error.message) if status == 500 else error.message
    return Answer({"error": {"code": code, "message": message[:_LONGEST_MESSAGE], "timestamp": now_text(), **details}}, status)


def _public(error: HeadwayError) -> tuple[int, str]:
    return shape_of(error).status, reason_of(error).upper()


def defect() -> Answer:
    """What was raised is no refusal: its text stays in the log."""
    return Answer({"error": {"code": "INTERNAL_ERROR", "message": "Internal error. The router's log has the details.", "timestamp": now_text()}}, 500)


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def send_answer(send: Send, answer: Answer, *, without_body: bool = False) -> None:
    body = answer.encoded()
    headers = [(b"content-type", answer.content_type.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in answer.headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if without_body else body})
