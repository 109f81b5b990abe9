"""Mistral: `[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]`, and since tokenizer 11 `[TOOL_CALLS]name[ARGS]{...}` for each call."""

from __future__ import annotations

from headway.server.answer_text.events import CallBegins
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import MAX_NAME, NAME, arguments, json_calls


def mistral(t: GrowingText, tools: Tools) -> Steps[None]:
    while (yield from t.until("[TOOL_CALLS]")):
        yield from t.blanks()
        if (yield from t.next_is("[{")):
            yield from json_calls(t)
        else:
            yield from _named_call(t)


def _named_call(t: GrowingText) -> Steps[None]:
    name = yield from t.matching(NAME, MAX_NAME)
    if (yield from t.literal("[CALL_ID]")):
        yield from t.matching(NAME, MAX_NAME)
    yield from t.literal("[ARGS]")
    yield from t.blanks()
    if name and (yield from t.next_is("{")):
        yield CallBegins(t.taken(), name)
        if (yield from arguments(t)):
            yield t.call_ends()
