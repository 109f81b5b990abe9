"""Errors as each client protocol writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from headway.wire.anthropic.errors import anthropic_envelope, anthropic_error_bytes, anthropic_error_event
from headway.wire.errors import error_body, error_bytes, shape_of
from headway.wire.sse import frame

_UNREADABLE: Final = frozenset({"body_invalid", "body_too_deep"})
_SYSTEM_ONE_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "overloaded_error"}


def rendered_for(protocol: str, error: BaseException) -> tuple[int, bytes]:
    """Status and body of an error of ours."""
    status = shape_of(error).status
    if protocol in ("systemone", "decisions"):
        return _system_one(protocol, status, error_body(error)["error"])
    return status, anthropic_error_bytes(error) if protocol == "anthropic" else error_bytes(error)


def last_event(protocol: str, error: BaseException) -> bytes:
    """An error after the stream has begun: one event, after which the stream ends without its usual end."""
    return _LAST_EVENTS.get(protocol, _openai_event)(error)


def foreign_error(protocol: str, status: int, raw: bytes) -> bytes:
    """A backend's error body. OpenAI's kind is passed on, with `code` as a string as OpenAI has it; anything else is put into that form."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = None
    found = body.get("error") if isinstance(body, Mapping) else None
    if isinstance(found, str):
        found = {"message": found}
    if not isinstance(found, Mapping):
        told = body.get("message") if isinstance(body, Mapping) else None  # older vLLM: the error is the body itself
        found = dict(body) if isinstance(body, Mapping) and isinstance(told, str) else {"message": f"The backend answered with status {status}"}
    error: dict[str, Any] = {"message": "", "type": "upstream_error", "param": None, "code": None, **found}
    if isinstance(error["code"], int):
        error["code"] = str(error["code"])
    try:
        return orjson.dumps(anthropic_envelope(status, error) if protocol == "anthropic" else {"error": error})
    except orjson.JSONEncodeError:  # nested deeper than can be written
        return foreign_error(protocol, status, b"")


def _system_one(protocol: str, status: int, error: Mapping[str, Any]) -> tuple[int, bytes]:
    """`detail` for System One's clients, `error` for those of OpenAI's form. A body that cannot be read is 422 for the former."""
    detail: Any = {"error_type": _SYSTEM_ONE_TYPES.get(status, "api_error" if status >= 500 else "api_usage_error"), "message": error["message"]}
    if error["reason"] in _UNREADABLE:
        detail = [{"type": "json_invalid", "loc": ["body"], "msg": error["message"]}]
        status = 422 if protocol == "systemone" else status
    return status, orjson.dumps({"error": {**error, "code": status}, "detail": detail})


def _openai_event(error: BaseException) -> bytes:
    return frame(error_bytes(error))


def _responses_event(error: BaseException) -> bytes:
    told = error_body(error)["error"]
    body = {"type": "error", "code": told["reason"], "message": told["message"], "param": told["param"], "sequence_number": 0}
    return b"event: error\n" + frame(orjson.dumps(body))


_LAST_EVENTS: Mapping[str, Callable[[BaseException], bytes]] = {"anthropic": anthropic_error_event, "responses": _responses_event}
