"""The one table from error reason to HTTP status and type, and the error envelope made from it.

Envelope: `{"error": {"message", "type", "param", "code", "reason"}}`; `code` is the HTTP status, `reason` a stable word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import orjson
from typing_extensions import TypedDict

from headway.errors import HeadwayError


class Shape(NamedTuple):
    """How a reason looks over HTTP."""

    status: int
    type: str


SHAPES: Mapping[str, Shape] = {
    # the request is wrong
    "invalid_request": Shape(400, "BadRequestError"),
    "body_invalid": Shape(400, "Bad Request"),
    "media_type_unsupported": Shape(400, "Bad Request"),
    "context_length_exceeded": Shape(400, "BadRequestError"),
    "adapter_invalid": Shape(400, "BadRequestError"),
    "lora_name_invalid": Shape(400, "InvalidUserInput"),
    "lora_already_loaded": Shape(400, "InvalidUserInput"),
    "chat_template_error": Shape(400, "BadRequestError"),
    "chat_template_missing": Shape(400, "BadRequestError"),
    "chat_template_untrusted": Shape(400, "BadRequestError"),
    "content_part_unsupported": Shape(400, "BadRequestError"),
    "not_built": Shape(400, "BadRequestError"),
    "body_too_large": Shape(413, "Request Entity Too Large"),
    "body_too_deep": Shape(400, "Bad Request"),
    "head_too_large": Shape(400, "Bad Request"),
    "request_timeout": Shape(408, "Request Timeout"),
    "unauthorized": Shape(401, "Unauthorized"),
    # what was asked for is not here
    "not_found": Shape(404, "NotFoundError"),
    "model_not_found": Shape(404, "NotFoundError"),
    "adapter_not_found": Shape(404, "NotFoundError"),
    "lora_not_found": Shape(404, "NotFoundError"),
    "route_not_found": Shape(404, "Not Found"),
    "method_not_allowed": Shape(405, "Method Not Allowed"),
    "route_not_built": Shape(501, "NotImplementedError"),
    # not now
    "loading": Shape(503, "ServiceUnavailableError"),
    "asleep": Shape(503, "ServiceUnavailableError"),
    "restarting": Shape(503, "ServiceUnavailableError"),
    "rank_failed": Shape(503, "ServiceUnavailableError"),
    "swap_in_progress": Shape(409, "ConflictError"),
    "profile_active": Shape(409, "ConflictError"),
    "profile_inactive": Shape(409, "ConflictError"),
    "sleep_mode_disabled": Shape(400, "BadRequestError"),
    "profiler_disabled": Shape(400, "BadRequestError"),
    "swap_failed": Shape(400, "BadRequestError"),
    "does_not_fit": Shape(507, "InsufficientStorageError"),
    "no_memory_for_kv": Shape(507, "InsufficientStorageError"),
    "queue_full": Shape(503, "Service Unavailable"),
    "shutting_down": Shape(503, "ServiceUnavailableError"),
    "kv_transfer_failed": Shape(503, "ServiceUnavailableError"),
    "deadline_exceeded": Shape(504, "DeadlineExceededError"),
    "too_many_connections": Shape(503, "Service Unavailable"),
    # the router's public address
    "header_invalid": Shape(400, "BadRequestError"),
    "model_required": Shape(400, "BadRequestError"),
    "model_not_available": Shape(400, "BadRequestError"),
    "model_not_allowed": Shape(403, "PermissionDeniedError"),
    "response_not_found": Shape(404, "NotFoundError"),
    "rate_limited": Shape(429, "rate_limit_error"),
    "budget_exceeded": Shape(429, "insufficient_quota"),
    "decision_unresolved": Shape(503, "ServiceUnavailableError"),
    "not_ready": Shape(503, "ServiceUnavailableError"),
    "store_unavailable": Shape(503, "ServiceUnavailableError"),
    # the router's backends
    "no_upstream": Shape(503, "ServiceUnavailableError"),
    "upstream_failed": Shape(502, "BadGatewayError"),
    "upstream_timeout": Shape(504, "GatewayTimeoutError"),
    "upstream_overloaded": Shape(503, "ServiceUnavailableError"),
    "max_output_tokens_exceeded": Shape(400, "BadRequestError"),
    "runtime_unavailable": Shape(503, "ServiceUnavailableError"),
    "runtime_overloaded": Shape(429, "rate_limit_error"),
    "runtime_failed": Shape(502, "Bad Gateway"),
    # plugins of the router
    "response_blocked": Shape(403, "PermissionDeniedError"),
    "prompt_cache_target_unsupported": Shape(400, "BadRequestError"),
    "context_compression_failed": Shape(400, "BadRequestError"),
    "masking_unavailable": Shape(503, "ServiceUnavailableError"),
    "guard_failed": Shape(503, "ServiceUnavailableError"),
    "retrieval_failed": Shape(503, "ServiceUnavailableError"),
    # our side broke
    "step_failed": Shape(500, "InternalServerError"),
    "logits_processor_failed": Shape(500, "InternalServerError"),
    "engine_dead": Shape(500, "InternalServerError"),
    "internal_error": Shape(500, "InternalServerError"),
}

RETRY_AFTER_SECONDS: Mapping[str, int] = {"loading": 2, "restarting": 2, "rank_failed": 2, "asleep": 5, "not_ready": 2, "queue_full": 1, "upstream_overloaded": 1, "shutting_down": 5}

_PATH = re.compile(r"(?<![\w:/.])/(?:[\w.+@-]+/)+([\w.+@-]+)")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_MESSAGE_LIMIT = 2000


class ErrorInfo(TypedDict):
    message: str
    type: str
    param: str | None
    code: int
    reason: str


class ErrorBody(TypedDict):
    error: ErrorInfo


def reason_of(error: BaseException) -> str:
    """The error's own reason if the table knows it, else that of the nearest class in the error tree that it knows."""
    if isinstance(error, HeadwayError):
        for reason in (error.reason, *(vars(c).get("reason") for c in type(error).__mro__)):
            if reason in SHAPES:
                return str(reason)
    return "internal_error"


def shape_of(error: BaseException) -> Shape:
    return SHAPES[reason_of(error)]


def error_body(error: BaseException) -> ErrorBody:
    """The envelope of `error`. What is no HeadwayError is a defect: its text stays in the log and never reaches a client."""
    status, kind = shape_of(error)
    if isinstance(error, HeadwayError):
        message, param, reason = error.message, error.param, error.reason
    else:
        message, param, reason = "Internal error. The server's log has the details.", None, "internal_error"
    if status == 500:
        message = scrub(message)
    if len(message) > _MESSAGE_LIMIT:
        message = message[: _MESSAGE_LIMIT - 3] + "..."
    return {"error": {"message": message, "type": kind, "param": param, "code": status, "reason": reason}}


def error_bytes(error: BaseException) -> bytes:
    return orjson.dumps(error_body(error))


def rendered(error: BaseException) -> tuple[int, bytes]:
    """Status and body."""
    return shape_of(error).status, error_bytes(error)


def scrub(message: str) -> str:
    """Cut folders off file paths and hide memory addresses."""
    return _ADDRESS.sub("0x...", _PATH.sub(r"\1", message))
