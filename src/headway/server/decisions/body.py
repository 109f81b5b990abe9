"""The body of a call of the decision routes: JSON, also compressed, as System One clients send it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request

from headway.engine.request_terms import RequestTerms
from headway.errors import NotFoundError
from headway.http.body import read_bytes
from headway.http.compression import codings_of, decoded
from headway.server.deadline import seconds_allowed
from headway.server.intake import require_json
from headway.server.state import ServerState, state_of
from headway.wire.decisions import DECISION_ALIASES, DecisionRequest
from headway.wire.limits import BodyLimits
from headway.wire.parse import parse_object
from headway.wire.violations import SchemaError, Violation

SHORT_BODY: Final = 16 * 1024  # bytes; what is longer is read and planned off the event loop
_MAX_SALT: Final = 1024
_ASKED_IN_QUESTIONS: Final = "instructions for all questions are not built; put them into the instructions of each question"
_NO_THINKING: Final = {"enable_thinking": False}


async def read_object(request: Request) -> tuple[dict[str, Any], int]:
    """The JSON object, and the bytes that it had. Raises RequestError, ClientLeft."""
    require_json(request)
    state = state_of(request)
    codings = codings_of(request.headers.get("content-encoding", ""))
    raw = await read_bytes(request.receive, request.headers.get("content-length", ""), state.limits, state.settings.request_body_timeout)
    if not codings and len(raw) <= SHORT_BODY:
        return parse_object(raw, state.limits), len(raw)
    return await asyncio.to_thread(_expanded, raw, codings, state.limits)


def _expanded(raw: bytes, codings: list[str], limits: BodyLimits) -> tuple[dict[str, Any], int]:
    plain = decoded(raw, codings, limits)
    return parse_object(plain, limits), len(plain)


def model_of(state: ServerState, fields: Mapping[str, Any]) -> str:
    """The name that the answer carries. Names that mean whatever decides mean this model. Raises SchemaError, NotFoundError."""
    name = fields.get("model")
    if name is not None and not isinstance(name, str):
        raise _wrong("model", "expected a text", "string_type")
    try:
        return state.model_named(name)
    except NotFoundError:
        if name in DECISION_ALIASES:
            return state.names[0]
        raise


def terms_of(state: ServerState, request: Request, fields: Mapping[str, Any], asked: DecisionRequest) -> RequestTerms:
    """How the questions are handled: `cache_salt`, `priority` and the deadline. Raises SchemaError also for what a language model
    does not do with them."""
    if fields.get("instructions") is not None and "input" not in fields:
        raise _wrong("instructions", _ASKED_IN_QUESTIONS, "value_error")
    if fields.get("chat_template_kwargs") not in (None, {}, _NO_THINKING):
        raise _wrong("chat_template_kwargs", "only enable_thinking: false is built", "value_error")
    if asked.options.return_meta:
        raise SchemaError([Violation(("body", "options", "return_meta"), "only the model runtime tells meta", "value_error")])
    salt, priority = fields.get("cache_salt"), fields.get("priority") or 0
    if salt is not None and not (isinstance(salt, str) and 0 < len(salt) <= _MAX_SALT):
        raise _wrong("cache_salt", f"expected a text of 1 to {_MAX_SALT} characters", "string_type")
    if not isinstance(priority, int) or (priority and state.engine.config.scheduling_policy != "priority"):
        raise _wrong("priority", "expected an integer, and 0 unless the server has --scheduling-policy priority", "value_error")
    seconds = seconds_allowed(request.headers, state.settings.request_timeout)
    if asked.options.deadline_ms is not None:
        seconds = min(asked.options.deadline_ms / 1000, seconds or float("inf"))
    return RequestTerms(priority=int(priority), cache_salt=salt, timeout=seconds, adapter=state.adapter_named(fields.get("model")))


def _wrong(name: str, message: str, kind: str) -> SchemaError:
    return SchemaError([Violation(("body", name), message, kind)])
