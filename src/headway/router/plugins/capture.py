"""What of requests and answers a record may hold: bounded, and without secrets and personal data unless that is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from headway.router.request.view import text_of
from headway.telemetry.redaction import Redactor

_SECRETS = Redactor()
_PERSONAL = (
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "[email]"),
    (re.compile(r"\b(?:\d[ -]?){13,19}\b"), "[number]"),
    (re.compile(r"(?<![\w.])\+?\d[\d ()./-]{7,}\d(?!\w)"), "[number]"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "[address]"),
)
_DATA_URL = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")


@dataclass(frozen=True, slots=True)
class Limits:
    """In bytes, and in steps of tool use; 0 for no limit."""

    body_bytes: int = 4096
    trace_bytes: int = 65536
    trace_steps: int = 100


def redacted(text: str, personal: bool) -> str:
    """Without keys and tokens, the data of media, and (unless `personal`) addresses and long numbers."""
    text = _DATA_URL.sub("[media]", _SECRETS(text))
    for pattern, mark in () if personal else _PERSONAL:
        text = pattern.sub(mark, text)
    return text


def excerpt(body: Any, most: int, personal: bool) -> tuple[str, bool]:
    """A body as JSON text of at most `most` bytes, whole characters, and whether it was cut. Only its strings are redacted: it stays JSON."""
    text = orjson.dumps(_redacted_strings(body, personal)).decode()
    data = text.encode()
    if not most or len(data) <= most:
        return text, False
    return data[:most].decode(errors="ignore"), True


def _redacted_strings(value: Any, personal: bool) -> Any:
    if isinstance(value, str):
        return redacted(value, personal)
    if isinstance(value, list):
        return [_redacted_strings(item, personal) for item in value]
    if isinstance(value, dict):
        return {key: _redacted_strings(item, personal) for key, item in value.items()}
    return value


def tool_trace(messages: Any, limits: Limits, personal: bool) -> list[dict[str, Any]]:
    """The use of tools in a conversation: calls and results, in order, bounded in number and size."""
    steps: list[dict[str, Any]] = []
    size = 0
    for message in messages if isinstance(messages, list) else ():
        for step in _steps(message) if isinstance(message, Mapping) else ():
            step = {name: redacted(value, personal) for name, value in step.items()}
            size += len(orjson.dumps(step))
            if (limits.trace_steps and len(steps) >= limits.trace_steps) or (limits.trace_bytes and size > limits.trace_bytes):
                return [*steps, {"kind": "cut"}]
            steps.append(step)
    return steps


def _steps(message: Mapping[str, Any]) -> list[dict[str, str]]:
    if message.get("role") in ("tool", "function"):
        return [{"kind": "result", "id": str(message.get("tool_call_id") or ""), "content": text_of(message)}]
    found = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {} if isinstance(call, Mapping) else {}
        found.append(
            {"kind": "call", "id": str(call.get("id")), "name": str(function.get("name")), "arguments": str(function.get("arguments") or "")}
        )
    return found
