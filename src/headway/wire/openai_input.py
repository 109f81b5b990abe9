"""`input` of OpenAI's decisions -> a state: messages, tool calls and their outputs as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from headway.wire.violations import Location, SchemaError, Violation

_USER_PARTS: Final = frozenset({"input_text", "input_json", "input_image"})
PARTS_OF_ROLE: Final[Mapping[str, frozenset[str]]] = {
    "user": _USER_PARTS,
    "developer": frozenset({"input_text"}),
    "system": frozenset({"input_text"}),
    "assistant": frozenset({"output_text", "refusal"}),
}
_OUTPUT_PARTS: Final = frozenset({"input_text", "input_image"})
_CALLS: Final[Mapping[str, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
_BORDER: Final = "\n\n"


def read_input(given: Any, where: Location) -> str:
    """One user message is its text; several items are blocks `role: text`, in their order. Raises SchemaError."""
    if isinstance(given, str):
        return _filled(given, where)
    if not isinstance(given, list) or not given:
        _refuse("expected a text or an array of items", "list_type", where)
    calls: set[str] = set()
    blocks = [_item(item, (*where, i), calls) for i, item in enumerate(given)]
    if len(blocks) == 1 and blocks[0][0] == "user":
        return _filled(blocks[0][1], where)
    return _filled(_BORDER.join(f"{role}: {text}" for role, text in blocks), where)


def read_parts(given: Any, known: frozenset[str], where: Location) -> str:
    """A text, or parts joined by blank lines. Raises SchemaError, also for images: the models served here read text."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given:
        _refuse("expected a text or an array of parts", "list_type", where)
    return _BORDER.join(_part(part, known, (*where, i)) for i, part in enumerate(given))


def _item(item: Any, where: Location, calls: set[str]) -> tuple[str, str]:
    """Who speaks, and what."""
    if not isinstance(item, dict):
        _refuse("expected an object", "dict_type", where)
    kind = item.get("type", "message")
    known = ("message", *_CALLS, *(f"{call}_output" for call in _CALLS))
    if kind not in known:
        _refuse(f"expected one of {', '.join(known)}", "literal_error", (*where, "type"))
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in PARTS_OF_ROLE:
            _refuse(f"expected one of {', '.join(PARTS_OF_ROLE)}", "literal_error", (*where, "role"))
        return role, read_parts(item.get("content"), PARTS_OF_ROLE[role], (*where, "content"))
    if kind in _CALLS:
        calls.add(_text(item, "call_id", where))
        return "tool call", f"{_text(item, 'name', where)}({_text(item, _CALLS[kind], where)})"
    if _text(item, "call_id", where) not in calls:
        _refuse("no earlier call has this id", "value_error", (*where, "call_id"))
    return "tool output", read_parts(item.get("output"), _OUTPUT_PARTS, (*where, "output"))


def _part(part: Any, known: frozenset[str], where: Location) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        _refuse(f"expected an object with type {' or '.join(sorted(known))}", "literal_error", where)
    if kind == "input_image":
        _refuse("images need a model that reads them; the models served here read text", "value_error", where)
    if kind == "input_json":
        data = part.get("data")
        if not isinstance(data, dict) and not (isinstance(data, list) and all(isinstance(each, dict) for each in data)):
            _refuse("expected an object or an array of objects", "dict_type", (*where, "data"))
        return json.dumps(data, ensure_ascii=False)
    return _text(part, "refusal" if kind == "refusal" else "text", where)


def _text(given: Mapping[str, Any], name: str, where: Location) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        _refuse("expected a text", "string_type", (*where, name))
    return value


def _filled(text: str, where: Location) -> str:
    if not text.strip():
        _refuse("the input is empty: there is nothing to decide on", "too_short", where)
    return text


def _refuse(message: str, kind: str, where: Location) -> NoReturn:
    raise SchemaError([Violation(where, message, kind)])
