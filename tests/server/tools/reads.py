"""Reading texts of answers in tests, at once and in pieces."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

import pytest

from headway.server.answer_parts import AnswerPlan
from headway.server.answer_text import reading
from headway.server.answer_text.events import CallBegins, CallEnds, Event
from headway.server.answer_text.reading import Reader, Reading
from headway.server.tools.constrained import arguments_of, list_of_calls
from headway.server.tools.definitions import Tools
from headway.server.tools.registry import tool_parser
from headway.wire.answer_delta import Delta

WEATHER: Tools = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "units": {"type": ["array", "null"]}}}
}


def reader(name: str) -> Reader:
    if name == "named":
        return partial(arguments_of, "get_weather")
    if name == "required":
        return lambda t: list_of_calls(t, WEATHER)
    return lambda t: tool_parser(name).read(t, WEATHER)


def events(made: Reader, pieces: Iterable[str]) -> list[Event]:
    """Of all pieces, with neighbours of one kind joined, since pieces decide how often those are divided."""
    reading_ = Reading(made)
    found = [event for piece in pieces for event in reading_.feed(piece)] + reading_.finish()
    joined: list[Event] = []
    for event in found:
        if joined and type(event) is type(joined[-1]) and not isinstance(event, CallBegins | CallEnds):
            joined[-1] = type(event)(joined[-1].raw + event.raw, joined[-1].text + event.text)  # type: ignore[union-attr,call-arg]
        else:
            joined.append(event)
    return joined


def whole(name: str, text: str, finish: str = "stop") -> Delta:
    return AnswerPlan(calls=reader(name)).whole(text, finish)


def calls_of(said: Delta) -> list[tuple[str, str]]:
    return [(c.name, c.arguments) for c in said.calls]


def raise_on_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `Reading` would tell the log about a failing reader fails the test."""

    def fail(message: str, *args: object) -> None:
        raise AssertionError(message % args)

    monkeypatch.setattr(reading, "_log", logging.Logger("none"))
    monkeypatch.setattr(reading._log, "error", fail)
