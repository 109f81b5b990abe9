"""Qwen3-Coder: `<tool_call><function=name><parameter=key>value</parameter>...</function></tool_call>`.

Values are plain text; the schema of the tool tells which of them are something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headway.server.answer_text.events import CallArguments, CallBegins
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools, kinds_of, properties_of
from headway.server.tools.json_call import MAX_NAME, json_text

_MAX_VALUE: Final = 65_536  # characters of a value that is no text
_END: Final = "</parameter>"


def qwen3_coder(t: GrowingText, tools: Tools) -> Steps[None]:
    while (marker := (yield from t.until("<tool_call>", "<function="))):
        if marker == "<tool_call>":
            yield from t.blanks()
            if not (yield from t.literal("<function=")):
                continue
        name = yield from t.upto(">", MAX_NAME)
        if name is None or not name.strip():
            continue
        yield CallBegins(t.taken(), name.strip())
        if (yield from _parameters(t, properties_of(tools, name.strip()))):
            yield t.call_ends()
            yield from t.blanks()
            yield from t.literal("</tool_call>")
            yield t.markup()


def _parameters(t: GrowingText, properties: Mapping[str, Any]) -> Steps[bool]:
    lead = "{"
    while True:
        yield from t.blanks()
        if (yield from t.literal("</function>")):
            yield CallArguments(t.taken(), "{}" if lead == "{" else "}")
            return True
        if not (yield from t.literal("<parameter=")):
            return False
        key = yield from t.upto(">", MAX_NAME)
        if key is None:
            return False
        lead += json_text(key.strip()) + ": "
        yield from t.literal("\n")
        if "string" in kinds_of(properties.get(key.strip())):
            yield CallArguments(t.taken(), lead + '"')
            if not (yield from _text(t)):
                return False
        else:
            value = yield from t.upto(_END, _MAX_VALUE)
            if value is None:
                return False
            yield CallArguments(t.taken(), lead + _json_of(value.strip()))
        lead = ", "


def _text(t: GrowingText) -> Steps[bool]:
    """A text as it arrives, up to its end mark and without the line break in front of that."""
    while True:
        end, marker = t.first(("\n" + _END, _END))
        t.at = end
        if t.at > t.start:
            raw = t.taken()
            yield CallArguments(raw, json.dumps(raw, ensure_ascii=False)[1:-1])
        if marker:
            t.at += len(marker)
            yield CallArguments(t.taken(), '"')
            return True
        if t.closed:
            return False
        yield None


def _json_of(value: str) -> str:
    """JSON, or a Python word for it, as JSON; anything else as a text."""
    value = {"True": "true", "False": "false", "None": "null"}.get(value, value)
    try:
        return json_text(json.loads(value))
    except (ValueError, RecursionError):
        return json_text(value)
