"""GrowingText: the text of an answer as a reader sees it, with a cursor, while more of it arrives.

A reader is a generator. It looks at characters through the steps below, yields events, and yields None where it needs more
text; so each format is written as if the whole text were there, and how the text was cut into pieces cannot matter.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, TypeVar

from headway.server.answer_text.events import CallEnds, Content, Event, Reasoning

T = TypeVar("T")
Steps = Generator[Event | None, None, T]
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_MOST_BLANKS: Final = 256  # in front of a call; more is content


class GrowingText:
    """`text[start:at]` was looked at and belongs to no event yet, `text[at:]` was not looked at."""

    __slots__ = ("at", "closed", "silent", "start", "text")

    def __init__(self) -> None:
        self.text = ""
        self.start = 0
        self.at = 0
        self.closed = False
        self.silent = True  # no content since the beginning or since the last marker

    def feed(self, piece: str) -> None:
        self.text = self.text[self.start :] + piece
        self.at -= self.start
        self.start = 0

    # events from what was looked at

    def taken(self) -> str:
        raw = self.text[self.start : self.at]
        self.start = self.at
        return raw

    def content(self) -> Content:
        raw = self.taken()
        return Content(raw, raw)

    def markup(self) -> Content:
        return Content(self.taken(), "")

    def call_ends(self) -> CallEnds:
        return CallEnds(self.taken(), True)

    # steps

    def some(self) -> Steps[bool]:
        """Whether a character is there."""
        while self.at == len(self.text) and not self.closed:
            yield None
        return self.at < len(self.text)

    def next_is(self, characters: str) -> Steps[bool]:
        """Whether the next character is one of these; it is not consumed."""
        return (yield from self.some()) and self.text[self.at] in characters

    def blanks(self) -> Steps[None]:
        while (yield from self.some()):
            found = _BLANKS.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return

    def literal(self, word: str) -> Steps[bool]:
        """Consume `word` if the text goes on with it."""
        while len(self.text) - self.at < len(word) and not self.closed and word.startswith(self.text[self.at :]):
            yield None
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def matching(self, pattern: re.Pattern[str], most: int) -> Steps[str]:
        """Consume the longest run of characters that `pattern` matches one by one; "" for a run of more than `most`."""
        found = ""
        while (yield from self.some()):
            run = pattern.match(self.text, self.at, self.at + most + 1 - len(found))
            if run is None or not run[0]:
                break
            found += run[0]
            self.at = run.end()
            if len(found) > most:
                return ""
        return found

    def upto(self, marker: str, most: int) -> Steps[str | None]:
        """Consume text and `marker`; returns the text, or None where the marker does not come within `most` characters."""
        begin = self.at - self.start  # events are not given out in between, so this stays true
        while True:
            found = self.text.find(marker, self.start + begin)
            length = (found if found >= 0 else len(self.text)) - self.start - begin
            if length > most + (len(marker) if found < 0 else 0) or (found < 0 and self.closed):
                return None
            if found >= 0:
                self.at = found + len(marker)
                return self.text[self.start + begin : found]
            yield None

    def until(self, *markers: str, kind: type[Content | Reasoning] = Content) -> Steps[str]:
        """Give out what comes before the first of `markers`, and consume it; returns it, "" where the text ends without.

        Blanks alone in front of a marker are markup.
        """
        while True:
            position, marker = self.first(markers)
            self.at = position
            head = self.text[self.start : self.at]
            if head and (kind is Reasoning or not self.silent or len(head) > _MOST_BLANKS or not head.isspace()):
                self.silent = False
                raw = self.taken()
                yield kind(raw, raw)
            elif head and marker:
                yield self.markup()
            if marker:
                self.at += len(marker)
                self.silent = True
                return marker
            if self.closed:
                return ""
            yield None

    def first(self, markers: tuple[str, ...]) -> tuple[int, str]:
        """Where the first marker begins, and which; "" and how far the text holds none for sure."""
        found = [(p, m) for m in markers if (p := self.text.find(m, self.at)) >= 0]
        if found:
            return min(found)
        end = len(self.text)
        return (end if self.closed else end - max(_begun(self.text, self.at, m) for m in markers)), ""


def _begun(text: str, at: int, marker: str) -> int:
    """How many characters at the end of `text` may be the beginning of `marker`."""
    for length in range(min(len(marker) - 1, len(text) - at), 0, -1):
        if text.endswith(marker[:length]):
            return length
    return 0
