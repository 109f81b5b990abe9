"""Errors as Anthropic's clients read them: `{"type": "error", "error": {"type", "message"}}`, with what ours tell beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from typing_extensions import TypedDict

from headway.wire.errors import ErrorInfo, error_body, shape_of
from headway.wire.sse import named_frame

_TYPES: Final = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 405: "invalid_request_error",
    408: "timeout_error", 413: "request_too_large", 415: "invalid_request_error", 422: "invalid_request_error", 429: "rate_limit_error",
    503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


class AnthropicErrorBody(TypedDict):
    type: Literal["error"]
    error: ErrorInfo


def anthropic_type(status: int) -> str:
    return _TYPES.get(status, "api_error")


def anthropic_envelope(status: int, error: Mapping[str, Any]) -> dict[str, Any]:
    """`error` is the inner object of OpenAI's envelope."""
    return {"type": "error", "error": {**error, "type": anthropic_type(status)}}


def anthropic_error_bytes(error: BaseException) -> bytes:
    return orjson.dumps(anthropic_envelope(shape_of(error).status, error_body(error)["error"]))


def anthropic_error_event(error: BaseException) -> bytes:
    """After a stream has begun; it ends with this, without its usual end."""
    return named_frame("error", anthropic_error_bytes(error))
