"""Reading: runs a reader over the text of one answer, piece by piece."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headway.server.answer_text.events import CallBegins, CallEnds, Content, Event
from headway.server.answer_text.growing_text import GrowingText, Steps

_log = logging.getLogger(__name__)
Reader = Callable[[GrowingText], Steps[None]]


class Reading:
    """What the reader leaves, or cannot read, is content; a call that it does not end is ended as incomplete.

    A reader that still waits for text at the end was cut off: what it looked at belongs to the open call.

    The events depend on the text alone: pieces only decide how often content, reasoning and arguments are divided.
    """

    def __init__(self, reader: Reader):
        self._text = GrowingText()
        self._reader = reader
        self._steps: Steps[None] | None = None
        self._over = False
        self._open = False  # a call has begun and not ended
        self._called = False  # a call has ended
        self._cut_off = False

    def feed(self, piece: str) -> list[Event]:
        self._text.feed(piece)
        return self._run()

    def finish(self) -> list[Event]:
        """The text is complete."""
        self._text.closed = True
        self._cut_off = not self._over
        return self._run()

    def _run(self) -> list[Event]:
        events: list[Event] = []
        if not self._over:
            try:
                self._over = self._advance(events)
            except Exception as error:  # a reader may be foreign code, and text must come through whatever it does
                _log.error("reading an answer failed (%s); the rest of it is content", type(error).__name__)
                self._over, self._cut_off = True, False
        if self._over:
            self._leave(events)
        return events

    def _advance(self, events: list[Event]) -> bool:
        """Up to where more text is needed. Returns whether the reader is done."""
        if self._steps is None:
            self._steps = self._reader(self._text)
        for event in self._steps:
            if event is None:
                return self._text.closed
            if isinstance(event, CallEnds):
                self._open, self._called = False, True
            elif self._open and isinstance(event, CallBegins | Content):
                self._open = False
                if self._cut_off and isinstance(event, Content):
                    events.append(CallEnds(event.raw, False, True))
                    continue
                events.append(CallEnds("", False, self._cut_off))
            if isinstance(event, CallBegins):
                self._open = True
            events.append(event)
        return True

    def _leave(self, events: list[Event]) -> None:
        text = self._text
        text.at = len(text.text)
        blanks = self._called and text.silent and text.text[text.start :].isspace()  # behind a call: content only with what follows
        rest = "" if blanks and not text.closed else text.taken()
        if self._open and self._cut_off:
            events.append(CallEnds(rest, False, True))
            self._open, rest = False, ""
        if self._open and (rest or text.closed):
            events.append(CallEnds("", False))
            self._open = False
        if rest:
            events.append(Content(rest, "" if blanks else rest))
            text.silent = False
