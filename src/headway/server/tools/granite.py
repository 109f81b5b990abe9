"""Granite 3: `<|tool_call|>` or `<tool_call>` and a list of call objects; some write the list alone, as the whole answer."""

from __future__ import annotations

from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import json_calls


def granite(t: GrowingText, tools: Tools) -> Steps[None]:
    yield from t.blanks()
    if (yield from t.next_is("[")):
        yield from json_calls(t, bare=True)
    while (yield from t.until("<|tool_call|>", "<tool_call>")):
        yield from t.blanks()
        if (yield from json_calls(t)):
            yield from t.blanks()
            yield from t.literal("</tool_call>")
            yield t.markup()
