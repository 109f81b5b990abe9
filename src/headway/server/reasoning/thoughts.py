"""Reads the thoughts at the beginning of an answer. What follows them is content."""

from __future__ import annotations

from headway.server.answer_text.events import Reasoning
from headway.server.answer_text.growing_text import GrowingText, Steps
from headway.server.reasoning.parsers import ReasoningParser


def thoughts(parser: ReasoningParser, are_open: bool, t: GrowingText) -> Steps[None]:
    """`are_open`: the answer begins inside of thoughts; a mark that begins them may come all the same. Without an end mark
    all of it is thoughts. Otherwise they begin with their mark, or there are none."""
    yield from t.blanks()
    marked = False
    for mark in parser.begins:
        marked = marked or (yield from t.literal(mark))
    if marked:
        yield t.markup()
    if marked or are_open:
        yield from t.until(*parser.ends, kind=Reasoning)
        yield t.markup()
