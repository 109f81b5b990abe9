"""How errors look on the decision routes: `detail` for System One clients, `error` for all others, in one body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from starlette.responses import Response

from headway.errors import HeadwayError
from headway.server.respond import json_response
from headway.wire.decision_body import is_runtime
from headway.wire.decision_errors import (
    TOO_LONG,
    TOO_LONG_STATUS,
    VALIDATION_STATUS,
    detail_of,
    openai_type,
    violations_of,
)
from headway.wire.errors import RETRY_AFTER_SECONDS, error_body, reason_of
from headway.wire.openai_decisions import is_openai

Refuse: TypeAlias = Callable[[HeadwayError, Mapping[str, Any] | None], Response]
"""An error, and the body that it was found in (None: it could not be read)."""


def refuse_system_one(error: HeadwayError, fields: Mapping[str, Any] | None) -> Response:
    """422 for a body that breaks the protocol, 400 for one that uses what the model runtime adds to it."""
    envelope: dict[str, Any] = dict(error_body(error)["error"])
    violations = violations_of(error, envelope["message"])
    if error.reason == TOO_LONG:
        envelope["code"] = TOO_LONG_STATUS
    elif violations and not (fields is not None and is_runtime(fields)):
        envelope["code"] = VALIDATION_STATUS
    detail = detail_of(violations, envelope["code"], envelope["message"])
    return _response(error, {"error": envelope, "detail": detail}, envelope["code"])


def refuse_decisions(error: HeadwayError, fields: Mapping[str, Any] | None) -> Response:
    """In the form of whoever speaks."""
    if fields is None or not is_openai(fields):
        return refuse_system_one(error, fields)
    envelope = error_body(error)["error"]
    return _response(error, {"error": {**envelope, "type": openai_type(envelope["code"])}}, envelope["code"])


def _response(error: HeadwayError, body: object, status: int) -> Response:
    response = json_response(body, status)
    if (seconds := RETRY_AFTER_SECONDS.get(reason_of(error))) is not None:
        response.headers["retry-after"] = str(seconds)
    if error.reason in ("body_too_large", "request_timeout"):
        response.headers["connection"] = "close"  # the rest of the body is not read
    return response
