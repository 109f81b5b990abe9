"""Llama 3.1 and later: the answer is `{"name": ..., "parameters": {...}}` and nothing else, several divided by `;`."""

from __future__ import annotations

from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import json_call


def llama3_json(t: GrowingText, tools: Tools) -> Steps[None]:
    yield from t.blanks()
    yield from t.literal("<|python_tag|>")
    yield from t.blanks()
    while (yield from json_call(t, bare=True)):
        yield t.call_ends()
        yield from t.blanks()
        yield from t.literal(";")
        yield from t.blanks()
        yield t.markup()
