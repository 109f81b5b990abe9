"""Answers that a schema forces to be calls, whatever the model's own format: the arguments of one tool, or a list of calls."""

from __future__ import annotations

from headway.server.answer_text.events import CallBegins
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.tools.definitions import Tools
from headway.server.tools.json_call import arguments, json_calls


def arguments_of(name: str, t: GrowingText) -> Steps[None]:
    """tool_choice names the tool: the answer is its arguments."""
    yield from t.blanks()
    if (yield from t.some()):
        yield CallBegins(t.taken(), name)
        if (yield from arguments(t)):
            yield t.call_ends()


def list_of_calls(t: GrowingText, tools: Tools) -> Steps[None]:
    """tool_choice "required": the answer is `[{"name": ..., "parameters": {...}}, ...]`."""
    yield from t.blanks()
    yield from json_calls(t)
