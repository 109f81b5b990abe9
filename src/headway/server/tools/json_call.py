"""Calls that are written as JSON objects, with a name and arguments: what most formats have in common."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from headway.server.answer_text.events import CallArguments, CallBegins
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.json_scanner import JsonScanner

MAX_NAME: Final = 256
NAME: Final = re.compile(r"[\w.:/-]+")
_MAX_HELD: Final = 65_536  # characters of what must be read before it is known whether there is a call
_LONE: Final = re.compile("[\\ud800-\\udfff]")
_ARGUMENTS: Final = ("arguments", "parameters")
_OF_A_CALL: Final = frozenset({"name", "type", "id", *_ARGUMENTS})


def json_value(t: GrowingText, most: int = _MAX_HELD) -> Steps[str | None]:
    """The text of the JSON value at the cursor; None if there is none, and the cursor is where it went wrong."""
    scanner = JsonScanner(most)
    value = ""
    while (yield from t.some()):
        t.at, written = scanner.push(t.text, t.at)
        value += written
        if scanner.done or scanner.broken:
            break
    scanner.close()
    return value if scanner.done else None


def json_string(t: GrowingText, most: int = _MAX_HELD) -> Steps[str | None]:
    if not (yield from t.next_is('"')):
        return None
    value = yield from json_value(t, most)
    return None if value is None else _read(value)


def arguments(t: GrowingText) -> Steps[bool]:
    """The arguments of the open call, given out as they arrive. False where they are no JSON object.

    Besides an object: its text as a JSON string, and null for a call without arguments.
    """
    if not (yield from t.next_is("{")):
        held = yield from _held_arguments(t)
        if held is not None:
            yield CallArguments(t.taken(), held)
        return held is not None
    scanner = JsonScanner()
    while (yield from t.some()):
        t.at, written = scanner.push(t.text, t.at)
        if written:
            yield CallArguments(t.taken(), written)
        if scanner.done or scanner.broken:
            break
    return scanner.done


def _held_arguments(t: GrowingText) -> Steps[str | None]:
    value = yield from json_value(t)
    if value is None or value == "null":
        return None if value is None else "{}"
    if value.startswith('"'):
        inner = _read(value) or ""
        scanner = JsonScanner()
        end, value = scanner.push(inner, 0)
        if not scanner.done or inner[end:].strip():
            return None
    return value if value.lstrip().startswith("{") else None


def json_call(t: GrowingText, *, bare: bool = False) -> Steps[bool]:
    """The call object at the cursor, up to its `}`; the caller ends the call. False where there is none, or a broken one.

    A `bare` object is not announced by a marker: it is a call only if nothing else about it is strange.
    """
    if not (yield from t.literal("{")):
        return False
    name: str | None = None
    held: str | None = None  # arguments in front of the name
    begun = False
    yield from t.blanks()
    last = yield from t.literal("}")
    while not last:
        key = yield from json_string(t)
        if key is None or (bare and key not in _OF_A_CALL) or not (yield from _colon(t)):
            return False
        if key == "name" and name is None:
            name = yield from json_string(t, 6 * MAX_NAME)
            if not name or len(name) > MAX_NAME:
                return False
            if held is not None:
                begun = True
                yield CallBegins(t.taken(), name)
                yield CallArguments("", held)
        elif key in _ARGUMENTS and not begun and held is None:
            if name is None:
                held = yield from _held_arguments(t)
                if held is None:
                    return False
            else:
                begun = True
                yield CallBegins(t.taken(), name)
                if not (yield from arguments(t)):
                    return False
        elif (yield from json_value(t)) is None:
            return False
        yield from t.blanks()
        last = yield from t.literal("}")
        if not last and not (yield from t.literal(",")):
            return False
        yield from t.blanks()
    if not begun:
        if name is None or bare:
            return False
        yield CallBegins(t.taken(), name)
        yield CallArguments("", "{}")
    return True


def json_calls(t: GrowingText, *, bare: bool = False) -> Steps[bool]:
    """A list of call objects, or one alone, each ended. False where something else begins."""
    if not (yield from t.literal("[")):
        read = yield from json_call(t, bare=bare)
        if read:
            yield t.call_ends()
        return read
    more = True
    while more:
        yield from t.blanks()
        if not (yield from json_call(t, bare=bare)):
            return False
        yield t.call_ends()
        yield from t.blanks()
        more = yield from t.literal(",")
    closed = yield from t.literal("]")
    if closed:
        yield t.markup()
    return closed


def _read(value: str) -> str | None:
    """The string that JSON text `value` stands for; None for half of a character pair, which no answer can carry."""
    text = str(json.loads(value))
    return text if _is_text(text) else None


def json_text(value: Any) -> str:
    """`value` as JSON that can be sent. Raises ValueError, TypeError or RecursionError for what JSON has no word for."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if _is_text(text) else json.dumps(value)


def _is_text(text: str) -> bool:
    """Whether there is no half of a character pair in it."""
    return text.isascii() or _LONE.search(text) is None


def _colon(t: GrowingText) -> Steps[bool]:
    yield from t.blanks()
    found = yield from t.literal(":")
    yield from t.blanks()
    return found
