"""One line of a log, undressed, and one hit in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headway.doctor.evidence.masking import MASK, mask
from headway.doctor.finding import Quote

_QUOTE_CHARS: Final = 240
_PLAIN_START: Final = 44  # so many characters at the start of a quote stay as they stand in the log


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1 at LF in the file as given. `process`: what printed it, such as `EngineCore pid=7`, "" if
    unknown. `level`: DEBUG | INFO | WARNING | ERROR | CRITICAL or "". `place`: `core.py:1108`, a logger's name, or "".
    `clock`: the text of its own time stamp or "". `text`: what is left. `fields`: the members of a JSON line."""

    source: str
    number: int
    process: str
    level: str
    place: str
    clock: str
    text: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def quote(self, start: int = 0) -> Quote:
        """The text from `start` on, masked and cut. A secret near the start moves the start behind it, so that the
        quote begins with words that stand in the log."""
        piece = mask(self.text[start : start + 4 * _QUOTE_CHARS])
        while (at := piece.find(MASK)) != -1 and at < _PLAIN_START:
            head, tail = piece[:at], piece[at + len(MASK) :]
            if len(head.strip()) >= len(tail.strip()):
                piece = head
                break
            piece = tail
        if len(piece) > _QUOTE_CHARS:
            piece = piece[:_QUOTE_CHARS] + "…"
        return Quote(self.source, self.number, piece.strip())


@dataclass(frozen=True, slots=True)
class Hit:
    """A line in which a sight's pattern matched. `hit["name"]` is a group's text, "" when it took no part."""

    line: Line
    match: re.Match[str]

    def __getitem__(self, group: str | int) -> str:
        return self.match[group] or ""

    def number(self, group: str | int) -> float:
        """A group as a number; commas between digits are allowed. Raises ValueError when it is none."""
        return float(self.match[group].replace(",", ""))

    def quote(self) -> Quote:
        """The line from a little before the match on."""
        start = self.match.start()
        return self.line.quote(0 if start < 160 else start)
