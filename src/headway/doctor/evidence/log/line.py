"""One line of a log, undressed, and one hit in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headway.doctor.evidence.log.request_text import CUT, without_request_text
from headway.doctor.evidence.masking import MASK, mask
from headway.doctor.finding import Quote

_QUOTE_CHARS: Final = 240
_PLAIN_START: Final = 44  # so many characters at the start of a quote stay as they stand in the log
_COMPARED: Final = 40
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1 at LF in the file as given. `process`: what printed it, such as `EngineCore pid=7`, "" if
    unknown. `level`: DEBUG | INFO | WARNING | ERROR | CRITICAL or "". `place`: `core.py:1108`, a logger's name, or "".
    `clock`: the text of its own time stamp or "". `text`: what is left. `fields`: the members of a JSON line.
    `container`: the container or unit around the process, or "". `raw`: the line as it stands in the file. `parts`: number and
    raw line of each part when a container runtime had cut it, else ()."""

    source: str
    number: int
    process: str
    level: str
    place: str
    clock: str
    text: str
    fields: Mapping[str, object] = field(default_factory=dict)
    container: str = ""
    raw: str = ""
    parts: tuple[tuple[int, str], ...] = ()

    @property
    def starts_a_record(self) -> bool:
        """Whether a logger began something new here; other lines continue what stands above them."""
        return bool(self.level or self.place or self.fields) or (self.process != self.container and bool(self.process))

    def quote(self, start: int = 0) -> Quote:
        """The text from `start` on, masked and cut, beginning with words that stand in the file."""
        shown = _shown(self.text[start : start + 4 * _QUOTE_CHARS])
        if self.parts:
            return self._quote_of_a_part(shown)
        if self.raw and not _stands_in(shown, self.raw):
            shown = _shown(self._as_written(start))
        return Quote(self.source, self.number, shown)

    def _quote_of_a_part(self, shown: str) -> Quote:
        """With the number of the part that holds it. What begins in one part and goes on in the next is quoted from there."""
        for skipped in range(_COMPARED):
            for number, raw in self.parts:
                if _stands_in(shown[skipped:], raw):
                    return Quote(self.source, number, shown[skipped:].strip())
        number, raw = self.parts[0]
        return Quote(self.source, number, _shown(without_request_text(raw[: 4 * _QUOTE_CHARS])))

    def _as_written(self, start: int) -> str:
        """The same place in the raw line, which a wrapper wrote in its own way (JSON, colours)."""
        raw = without_request_text(_ESCAPE.sub("", self.raw))
        for length in (_COMPARED, 16, 8):
            if (at := raw.find(self.text[start : start + length].strip())) > 0:
                return raw[at : at + 4 * _QUOTE_CHARS]
        return raw[: 4 * _QUOTE_CHARS]


def _shown(text: str) -> str:
    """`text` masked and cut. What was taken out near the start moves the start behind it, so that the quote begins with
    words of the file."""
    piece = mask(text)
    while out := min(((at, mark) for mark in (MASK, CUT) if 0 <= (at := piece.find(mark)) < _PLAIN_START), default=None):
        head, tail = piece[: out[0]], piece[out[0] + len(out[1]) :]
        if len(head.strip()) >= len(tail.strip()):
            piece = head
            break
        piece = tail
    if len(piece) > _QUOTE_CHARS:
        piece = piece[:_QUOTE_CHARS] + "…"
    return piece.strip()


def _stands_in(shown: str, raw: str) -> bool:
    return _squeezed(shown).strip("…. ")[:_COMPARED] in _squeezed(_ESCAPE.sub("", raw))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


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
