"""Hermes 2 and 3, Qwen 2.5 and 3, Granite 4: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, once for each call."""

from __future__ import annotations

from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import json_call


def hermes(t: GrowingText, tools: Tools) -> Steps[None]:
    while (yield from t.until("<tool_call>")):
        yield from t.blanks()
        if (yield from json_call(t)):
            yield t.call_ends()
            yield from t.blanks()
            yield from t.literal("</tool_call>")
            yield t.markup()
