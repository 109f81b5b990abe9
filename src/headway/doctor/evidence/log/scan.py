"""Read logs of any size once, in bounded memory, keeping what the given sights want.

All anchors of all sights are searched together (Aho-Corasick) in blocks of text; only lines that hold one are undressed
and matched. A line of a hundred megabytes is cut, never held whole.
"""

from __future__ import annotations

import gzip
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, Final

from ahocorasick_rs import AhoCorasick

from headway.doctor.evidence.log.dress import undress
from headway.doctor.evidence.log.line import Hit, Line
from headway.doctor.evidence.log.log import Log, empty_kept
from headway.doctor.evidence.log.request_text import without_request_text
from headway.doctor.evidence.sight import Sight
from headway.errors import DoctorError

_BLOCK: Final = 1 << 20
_LINE_AT_MOST: Final = 4 << 20
_WINDOW: Final = 16 << 10  # characters of an over-long line that are looked at around an anchor


def read_logs(paths: Sequence[Path], sights: Iterable[Sight]) -> Log:
    """Every file in turn; several files are one log, in the order given.

    Raises DoctorError (`log_unreadable`) when a file cannot be read.
    """
    scanner = _Scanner(tuple(sights))
    for path in paths:
        try:
            with _open(path) as stream:
                scanner.file(path.name, stream)
        except (OSError, EOFError) as error:
            raise DoctorError(
                f"the log {path} cannot be read: {error}", reason="log_unreadable", fix="Give the path of a text file that this user may read."
            ) from error
    return scanner.log()


def read_text(source: str, data: bytes, sights: Iterable[Sight]) -> Log:
    """Bytes that are at hand as a log named `source`."""
    scanner = _Scanner(tuple(sights))
    scanner.file(source, io.BytesIO(data))
    return scanner.log()


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


class _Scanner:
    def __init__(self, sights: tuple[Sight, ...]) -> None:
        self._kept = empty_kept(sights)
        self._wanting: dict[str, list[Sight]] = {}
        for sight in sights:
            for anchor in sight.anchors:
                self._wanting.setdefault(anchor, []).append(sight)
        self._anchors = list(self._wanting)
        self._search = AhoCorasick(self._anchors)
        self._lines = 0
        self._nbytes = 0
        self._sources: list[str] = []

    def log(self) -> Log:
        return Log(self._kept, self._lines, self._nbytes, tuple(self._sources))

    def file(self, source: str, stream: IO[bytes]) -> None:
        self._sources.append(source)
        number = 1
        for block in _blocks(stream):
            self._nbytes += len(block)
            number = self._block(source, number, block.decode("utf-8", "replace"))

    def _block(self, source: str, number: int, text: str) -> int:
        """Whole lines; `number` is the first one's. Return the next line's number."""
        raws = text.split("\n")
        if raws and not raws[-1]:
            raws.pop()
        self._lines += len(raws)
        starts = list(accumulate((len(raw) + 1 for raw in raws), initial=0))
        wanted: dict[int, dict[str, int]] = {}
        for anchor, start, _ in self._search.find_matches_as_indexes(text, overlapping=True):
            index = bisect_right(starts, start) - 1
            wanted.setdefault(index, {}).setdefault(self._anchors[anchor], start - starts[index])
        for index in sorted(wanted):
            self._line(source, number + index, raws[index], wanted[index])
        return number + len(raws)

    def _line(self, source: str, number: int, raw: str, anchors: dict[str, int]) -> None:
        done: set[Sight] = set()
        short = _undress_clean(source, number, raw) if len(raw) <= 2 * _WINDOW else None
        for anchor, at in anchors.items():
            line = short or _undress_clean(source, number, raw[max(0, at - _WINDOW) : at + _WINDOW])
            for sight in self._wanting[anchor]:
                if sight not in done and (match := sight.pattern.search(line.text)):
                    done.add(sight)
                    self._kept[sight].add(Hit(line, match))


def _undress_clean(source: str, number: int, raw: str) -> Line:
    line = undress(source, number, raw)
    text = without_request_text(line.text)
    if text is line.text:
        return line
    return Line(line.source, line.number, line.process, line.level, line.place, line.clock, text, line.fields)


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks that end at a line's end. What goes over the limit of a line is dropped up to its LF."""
    rest = b""
    dropping = False
    while piece := stream.read(_BLOCK):
        if dropping:
            cut = piece.find(b"\n")
            if cut < 0:
                continue
            piece, dropping = piece[cut:], False
        rest += piece
        cut = rest.rfind(b"\n")
        if cut >= 0:
            yield rest[: cut + 1]
            rest = rest[cut + 1 :]
        elif len(rest) > _LINE_AT_MOST:
            rest, dropping = rest[:_LINE_AT_MOST], True
    if rest:
        yield rest
