"""Bytes of a request -> a checked body. Every failure is a RequestError with a short text and the field in `param`."""

from __future__ import annotations

import reprlib
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from headway.errors import RequestError
from headway.wire.limits import BodyLimits, check_depth

T = TypeVar("T", bound=BaseModel)
_MAX_ENTRIES = 10
_MAX_INPUT = 200
_MAX_FIELDS = 1000  # unknown ones are ignored, but looked at
_SHOW = reprlib.Repr()  # never renders a large value in full
_SHOW.maxstring = _SHOW.maxother = _MAX_INPUT


def parse_object(raw: bytes, limits: BodyLimits) -> dict[str, Any]:
    """The JSON object in `raw`. Raises RequestError, reason `body_invalid` or `body_too_deep`."""
    if not raw.strip():
        raise RequestError("The body is empty, expected a JSON object", reason="body_invalid")
    check_depth(raw, limits)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        where = f"line {e.lineno}, column {e.colno}"
        raise RequestError(f"The body is not valid JSON: {e.msg} ({where})", reason="body_invalid") from e
    if not isinstance(value, dict):
        raise RequestError(f"The body is a JSON {_json_kind(value)}, expected an object", reason="body_invalid")
    if len(value) > _MAX_FIELDS:
        raise RequestError(f"The body has {len(value)} fields, the limit is {_MAX_FIELDS}", reason="body_invalid")
    return value


def parse_body(model: type[T], fields: dict[str, Any]) -> T:
    """Raises RequestError, reason `body_invalid`, with at most 10 findings and inputs cut at 200 characters."""
    try:
        return model.model_validate(fields)
    except ValidationError as e:
        raise _invalid(e) from None


def _invalid(error: ValidationError) -> RequestError:
    found = error.errors(include_url=False, include_context=False)
    entries = [_entry(item["loc"], item["msg"], item["type"], item["input"]) for item in found[:_MAX_ENTRIES]]
    if len(found) > _MAX_ENTRIES:
        entries.append(f"and {len(found) - _MAX_ENTRIES} more")
    first = found[0]
    param = _field(first["loc"]) or first["type"]  # checks across fields carry the field's name as their type
    return RequestError("; ".join(entries), param=param, reason="body_invalid")


def _entry(loc: tuple[int | str, ...], message: str, kind: str, given: Any) -> str:
    if not loc or kind in loc:  # our own sentences name the field themselves
        return message
    text = f"{_field(loc)}: {message[:1].lower()}{message[1:]}"
    if kind == "missing":
        return text
    return f"{text}, got {_SHOW.repr(given)[:_MAX_INPUT]}"


def _field(loc: tuple[int | str, ...]) -> str:
    """`("messages", 0, "role")` -> `messages[0].role`. Names of union branches, which pydantic adds, are left out."""
    out = ""
    for i, part in enumerate(loc):
        if i and loc[i - 1] in _TAGGED:
            continue
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.isidentifier() and part not in _BRANCHES:
            out += f".{part}" if out else part
    return out[:_MAX_INPUT]


_BRANCHES = {"str", "int", "float", "bool"}
_TAGGED = {"response_format"}  # fields whose `type` selects the branch: pydantic puts its value behind the name


def _json_kind(value: Any) -> str:
    names = {list: "list", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    return names[type(value)]
