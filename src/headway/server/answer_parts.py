"""From the text of an answer to its parts: reasoning, content, tool calls. The same for every API and for streams.

`AnswerPlan` says what to look for, once for a request; `AnswerReader` reads one sequence; both give `Delta`s.
"""

from __future__ import annotations

import secrets
import string
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from headway.server.answer_text.events import CallArguments, CallBegins, CallEnds, Content, Event, Reasoning
from headway.server.answer_text.reading import Reader, Reading
from headway.wire.answer_delta import CallPart, Delta

_LETTERS: Final = string.ascii_letters + string.digits


def _long_id() -> str:
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def _short_id() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(9))


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """`thoughts` and `calls` are the readers that the answer needs; None = it has no such part.

    `must_call`: the answer is forced to be calls, so a broken one is a call all the same, and no content.
    """

    thoughts: Reader | None = None
    calls: Reader | None = None
    must_call: bool = False
    parallel: bool = True  # else the first call counts
    shows_reasoning: bool = True
    short_ids: bool = False

    @property
    def is_plain(self) -> bool:
        """The answer is its text."""
        return self.thoughts is None and self.calls is None

    def reader(self) -> AnswerReader:
        """For one sequence of a stream."""
        return AnswerReader(self)

    def whole(self, text: str, finish: str | None, stop: int | str | None = None) -> Delta:
        """A complete answer: what a stream of it says, all together, also of a call that was cut off at the end.

        Only a call that goes wrong before the end, which a stream has begun to send, is content here.
        """
        return AnswerReader(self).read(text, finish or "stop", stop, whole=True)


PLAIN: Final = AnswerPlan()


class AnswerReader:
    def __init__(self, plan: AnswerPlan):
        self._plan = plan
        self._thoughts = None if plan.thoughts is None else Reading(plan.thoughts)
        self._calls = None if plan.calls is None else Reading(plan.calls)
        self._new_id: Callable[[], str] = _short_id if plan.short_ids else _long_id
        self._index = -1  # of the latest call
        self._complete = 0  # calls

    def read(self, text: str, finish: str | None, stop: int | str | None = None, *, whole: bool = False) -> Delta:
        """What `text`, which is new, adds. With `finish` it was the last."""
        events = self._events(text, over=finish is not None)
        if whole and not self._plan.must_call:
            events = _sound(events)
        reasoning, content, calls = [], [], dict[int, CallPart]()
        for event in events:
            if isinstance(event, Content):
                content.append(event.text)
            elif isinstance(event, Reasoning):
                reasoning.append(event.text)
            else:
                self._call(event, calls)
        if finish == "stop" and self._complete:
            finish = "tool_calls"
        return Delta(
            reasoning="".join(reasoning) if self._plan.shows_reasoning else "",
            text="".join(content),
            calls=tuple(c for c in calls.values() if c.index == 0 or self._plan.parallel),
            finish=finish,
            stop=stop if isinstance(stop, str) else None,
        )

    def _events(self, text: str, over: bool) -> list[Event]:
        found = _passed(self._thoughts, [Content(text, text)] if text else [], over)
        return _passed(self._calls, found, over)

    def _call(self, event: CallBegins | CallArguments | CallEnds, calls: dict[int, CallPart]) -> None:
        if isinstance(event, CallBegins):
            self._index += 1
            calls[self._index] = CallPart(self._index, self._new_id(), event.name, "")
        elif isinstance(event, CallArguments):
            known = calls.get(self._index, CallPart(self._index, "", "", ""))
            calls[self._index] = CallPart(known.index, known.id, known.name, known.arguments + event.text)
        else:
            self._complete += event.complete


def _passed(reading: Reading | None, events: Iterable[Event], over: bool) -> list[Event]:
    """`events` with their content read further."""
    if reading is None:
        return list(events)
    found: list[Event] = []
    for event in events:
        if isinstance(event, Content) and event.text:
            found += reading.feed(event.text)
        else:
            found.append(event)
    if over:
        found += reading.finish()
    return found


def _sound(events: Iterable[Event]) -> list[Event]:
    """`events` with broken calls as the content that they were written as."""
    kept: list[Event] = []
    call: list[Event] = []
    for event in events:
        if isinstance(event, CallBegins) or call:
            call.append(event)
        else:
            kept.append(event)
        if isinstance(event, CallEnds):
            raw = "".join(each.raw for each in call)
            kept += call if event.complete or event.cut_off else [Content(raw, raw)]
            call = []
    return kept + call
