"""Llama 3.2 and 4, and others: the answer is a list of Python calls, `[weather(city="Oslo"), add(a=1, b=[2, 3])]`, and nothing else."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

from headway.server.answer_text.events import CallArguments, CallBegins
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import MAX_NAME, json_text

_NAME: Final = re.compile(r"[\w.]+")
_MAX_VALUE: Final = 65_536  # characters
_MAX_DEPTH: Final = 64
_ESCAPABLE: Final = frozenset("\\'\"abfnrtvxuN01234567\nU")


def pythonic(t: GrowingText, tools: Tools) -> Steps[None]:
    yield from t.blanks()
    yield from t.literal("<|python_start|>")
    yield from t.blanks()
    more = yield from t.literal("[")
    while more:
        yield from t.blanks()
        name = yield from t.matching(_NAME, MAX_NAME)
        if not name or not (yield from t.literal("(")):
            return
        yield CallBegins(t.taken(), name)
        if not (yield from _keywords(t)):
            return
        yield t.call_ends()
        yield from t.blanks()
        more = yield from t.literal(",")
        if not more and (yield from t.literal("]")):
            yield from t.blanks()
            yield from t.literal("<|python_end|>")
            yield t.markup()


def _keywords(t: GrowingText) -> Steps[bool]:
    """`key=value, ...)` as a JSON object, a value at a time."""
    lead = "{"
    while True:
        yield from t.blanks()
        if (yield from t.literal(")")):
            yield CallArguments(t.taken(), "{}" if lead == "{" else "}")
            return True
        key = yield from t.matching(_NAME, MAX_NAME)
        yield from t.blanks()
        if not key or not (yield from t.literal("=")):
            return False
        yield from t.blanks()
        source = yield from _source(t)
        value = None if source is None else _json_of(source)
        if value is None:
            return False
        yield from t.literal(",")
        yield CallArguments(t.taken(), f"{lead}{json_text(key)}: {value}")
        lead = ", "


def _source(t: GrowingText) -> Steps[str | None]:
    """The characters of one value, up to the comma or parenthesis that follows it."""
    found: list[str] = []
    depth = 0
    quote = ""
    escaped = False
    while (yield from t.some()):
        c = t.text[t.at]
        if quote:
            if escaped:
                escaped = False
                c = c if c in _ESCAPABLE else "\\" + c
            elif c == "\\":
                escaped = True
            elif c == quote:
                quote = ""
            elif c == "\n":
                c = "\\n"
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif depth == 0 and c in "),":
            return "".join(found)
        elif c in ")]}":
            depth -= 1
        if len(found) == _MAX_VALUE or not 0 <= depth <= _MAX_DEPTH:
            return None
        found.append(c)
        t.at += 1
    return None


def _json_of(source: str) -> str | None:
    """A Python literal, or one of JSON's words, as JSON; None for anything else."""
    source = source.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of a literal would show it in the log
            value = ast.literal_eval({"true": "True", "false": "False", "null": "None"}.get(source, source))
        return json_text(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
