"""Phi-4-mini: `functools[{"name": ..., "arguments": {...}}, ...]`, or the same list between `<|tool_call|>` marks."""

from __future__ import annotations

from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import json_calls


def phi4_mini_json(t: GrowingText, tools: Tools) -> Steps[None]:
    while (yield from t.until("functools", "<|tool_call|>")):
        yield from t.blanks()
        if (yield from t.next_is("[")) and (yield from json_calls(t)):
            yield from t.blanks()
            yield from t.literal("<|/tool_call|>")
            yield t.markup()
