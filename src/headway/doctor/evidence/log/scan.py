"""Read logs of any size once, in bounded memory and time, keeping what the given sights want.

All anchors of all sights are searched together (Aho-Corasick) in blocks of text; only lines that hold one are undressed
and matched. Of a sight with thousands of lines only some are: see `Kept.choose`.
"""

from __future__ import annotations

import heapq
import io
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from lzma import LZMAError
from pathlib import Path
from typing import Final

from ahocorasick_rs import AhoCorasick

from headway.doctor.evidence.log.blocks import blocks
from headway.doctor.evidence.log.dress import undress
from headway.doctor.evidence.log.line import Hit, Line
from headway.doctor.evidence.log.log import Log, empty_kept
from headway.doctor.evidence.log.opening import Stream, names_of, opened
from headway.doctor.evidence.log.records import LINES_BACK, Records
from headway.doctor.evidence.log.request_text import without_request_text
from headway.doctor.evidence.log.split_lines import Rejoined, numbered, rejoined
from headway.doctor.evidence.sight import Sight
from headway.errors import DoctorError

_BEFORE: Final = 1024  # characters before an anchor that are looked at in a long line
_PIECES_AT_MOST: Final = 8
_ROWS_AT_MOST: Final = 1024  # lines under one hit that are looked at without an anchor
_COMPARED: Final = 24


def read_logs(paths: Sequence[Path], sights: Iterable[Sight], progress: Callable[[int], None] | None = None) -> Log:
    """Every file in turn; several files are one log, in the order given. `progress` is told of bytes that were read.

    Raises DoctorError (`log_unreadable`) when a file cannot be read.
    """
    scanner = _Scanner(tuple(sights), progress)
    for path, name in zip(paths, names_of(paths), strict=True):
        try:
            with opened(path) as stream:
                scanner.file(name, stream)
        except (OSError, EOFError, LZMAError, zlib.error) as error:
            raise DoctorError(
                f"the log {path} cannot be read: {error}", reason="log_unreadable", fix="Give the path of a text file that this user may read."
            ) from error
    return scanner.log()


def read_text(source: str, data: bytes, sights: Iterable[Sight]) -> Log:
    """Bytes that are at hand as a log named `source`."""
    scanner = _Scanner(tuple(sights))
    scanner.file(source, io.BytesIO(data))
    return scanner.log()


@lru_cache(maxsize=2)
def _search_for(sights: tuple[Sight, ...]) -> tuple[AhoCorasick, tuple[tuple[Sight, ...], ...]]:
    """The automaton of all anchors, and in its order who wants each."""
    wanting: dict[str, tuple[Sight, ...]] = {}
    for sight in sights:
        for anchor in sight.anchors:
            wanting[anchor] = (*wanting.get(anchor, ()), sight)
    return AhoCorasick(tuple(wanting)), tuple(wanting.values())


class _Scanner:
    def __init__(self, sights: tuple[Sight, ...], progress: Callable[[int], None] | None = None) -> None:
        self._progress = progress
        self._kept = empty_kept(sights)
        self._search, self._wanting = _search_for(sights)
        self._lines = 0
        self._nbytes = 0
        self._sources: list[str] = []
        self._records = Records()
        self._above: list[str] = []
        self._below: dict[Sight, int] = {}  # looked for in the next line: how many lines below its hit that is

    def log(self) -> Log:
        return Log(self._kept, self._lines, self._nbytes, tuple(self._sources))

    def file(self, source: str, stream: Stream) -> None:
        self._sources.append(source)
        self._records, self._above, self._below = Records(), [], {}
        number, held = 1, ""
        for block in blocks(stream):
            self._nbytes += len(block)
            if self._progress is not None:
                self._progress(len(block))
            text = held + block.decode("utf-8", "replace")
            raws = _lines_of(text)
            whole = rejoined(text, raws)
            held = "".join(f"{raw}\n" for raw in raws[len(raws) - whole.held :])
            number = self._block(source, number, whole)
        if held:
            self._block(source, number, Rejoined(held, _lines_of(held)))

    def _block(self, source: str, number: int, whole: Rejoined) -> int:
        """Whole lines; `number` is the first one's. Return the next line's number."""
        raws = whole.raws
        self._lines += len(raws)
        wanted: dict[int, list[Sight]] = {}
        for sight, indices in self._candidates(whole.text, raws).items():
            for index in self._kept[sight].choose(indices):
                wanted.setdefault(index, []).append(sight)
        head = len(self._above)
        above = self._above + raws
        places = sorted({*wanted, 0} if self._below and raws else wanted)
        last = -1
        while places:
            index = heapq.heappop(places)
            if index == last:
                continue
            last, place = index, head + index
            sights = [*wanted.get(index, ()), *(sight for sight in self._below if sight not in wanted.get(index, ()))]
            parts = numbered(whole.parts[index], number) if index in whole.parts else ()
            self._line(source, number + index, raws[index], sights, above[max(0, place - LINES_BACK) : place], parts)
            if self._below and index + 1 < len(raws):
                heapq.heappush(places, index + 1)
        self._above = above[-LINES_BACK:]
        return number + len(raws)

    def _candidates(self, text: str, raws: Sequence[str]) -> dict[Sight, list[int]]:
        """For each sight the lines (by index, ascending) that hold one of its anchors."""
        starts = list(accumulate((len(raw) + 1 for raw in raws), initial=0))
        found: dict[Sight, list[int]] = {}
        index = 0
        for anchor, start, _ in self._search.find_matches_as_indexes(text, overlapping=True):
            if not starts[index] <= start < starts[index + 1]:
                index = bisect_right(starts, start) - 1
            for sight in self._wanting[anchor]:
                indices = found.setdefault(sight, [])
                if not indices or indices[-1] != index:
                    indices.append(index)
        return found

    def _line(
        self, source: str, number: int, raw: str, sights: Sequence[Sight], above: Sequence[str], parts: tuple[tuple[int, str], ...]
    ) -> None:
        """`above`: the raw lines before it. What a bar or a terminal overwrote is a line of its own, of the same number."""
        seeking: list[Sight] = list(sights)
        under, self._below = self._below, {}
        for piece in raw.rstrip("\r").split("\r"):
            held = [sight for sight in seeking if len(piece) == len(raw) or sight in under or any(anchor in piece for anchor in sight.anchors)]
            if not held or (line := self._records.owned(undress(source, number, piece), above)) is None:
                continue
            text = without_request_text(line.text)
            line = line if text is line.text and not parts else replace(line, text=text, parts=parts)
            for sight in held:
                if hit := _hit(sight, line):
                    seeking.remove(sight)
                    self._kept[sight].add(hit)
                    self._look_below(sight, under)

    def _look_below(self, sight: Sight, under: Mapping[Sight, int]) -> None:
        """What the next line is looked at for, after this one was a hit: `under` was looked for in it for that reason."""
        if sight.below is not None and sight.below in self._kept:
            self._below[sight.below] = 1
        elif under.get(sight, _ROWS_AT_MOST) < _ROWS_AT_MOST:
            self._below.setdefault(sight, under[sight] + 1)


def _lines_of(text: str) -> list[str]:
    raws = text.split("\n")
    return raws if raws[-1] else raws[:-1]


def _hit(sight: Sight, line: Line) -> Hit | None:
    for part in (line,) if len(line.text) <= _BEFORE + sight.reach else _pieces(line, sight):
        if match := sight.pattern.search(part.text):
            return Hit(part, match)
    return None


def _pieces(line: Line, sight: Sight) -> Iterator[Line]:
    """Of a long line what stands around the anchors."""
    for anchor in sight.anchors:
        at = -1
        for _ in range(_PIECES_AT_MOST):
            if (at := line.text.find(anchor, at + 1)) < 0:
                break
            start, end = max(0, at - _BEFORE), at + sight.reach
            yield replace(line, text=line.text[start:end], raw=_around(line.raw, line.text[at : at + _COMPARED], sight.reach))
            at = end - _BEFORE


def _around(raw: str, words: str, reach: int) -> str:
    at = raw.find(words)
    return raw[max(0, at - _BEFORE) : at + reach] if at >= 0 else ""
