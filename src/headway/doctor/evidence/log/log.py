"""A log that was read: for every sight its hits, and the counts that say what was not kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import Sight

_ENDS: Final = 64
_SERIES: Final = 1024
_EXACT: Final = 128  # so many lines of a sight are all looked at
_PER_BLOCK: Final = 8  # then the last ones of each block of a megabyte


class Kept:
    """The hits of one sight in bounded memory: the first and last 64, or every n-th of a series of any length."""

    __slots__ = ("_candidates", "_examined", "_first", "_hits", "_last", "_series", "_stride", "_thin")

    def __init__(self, series: bool) -> None:
        self._series = series
        self._first: list[Hit] = []
        self._last: deque[Hit] = deque(maxlen=_ENDS)
        self._thin: list[Hit] = []
        self._stride = 1
        self._candidates = 0  # lines with an anchor
        self._examined = 0  # those that were looked at
        self._hits = 0  # those that matched

    def choose(self, indices: Sequence[int]) -> Sequence[int]:
        """Which of a block's lines with an anchor are worth a look: all at first, then the last ones of each block; of a
        series every n-th, with a growing n."""
        before = self._candidates
        self._candidates += len(indices)
        if self._series:
            while len(self._thin) + len(indices) // self._stride > _SERIES:
                self._thin = self._thin[::2]
                self._stride *= 2
            chosen = indices[-before % self._stride :: self._stride]
        else:
            exact = max(0, _EXACT - before)
            chosen = [*indices[:exact], *indices[exact:][-_PER_BLOCK:]]
        self._examined += len(chosen)
        return chosen

    def add(self, hit: Hit) -> None:
        self._hits += 1
        if self._series:
            self._thin.append(hit)
        elif len(self._first) < _ENDS:
            self._first.append(hit)
        else:
            self._last.append(hit)

    @property
    def count(self) -> int:
        """How many lines match: exact up to a hundred, beyond it in the proportion of those that were looked at."""
        unseen = self._candidates - self._examined
        return self._hits + (unseen * self._hits // self._examined if self._examined else 0)

    def hits(self) -> tuple[Hit, ...]:
        return tuple(self._thin) if self._series else (*self._first, *self._last)


@dataclass(frozen=True, slots=True)
class Log:
    """What was kept of one or several files. `lines` and `nbytes` count everything that was read."""

    kept: Mapping[Sight, Kept] = field(default_factory=dict)
    lines: int = 0
    nbytes: int = 0
    sources: tuple[str, ...] = ()

    def hits(self, *sights: Sight) -> tuple[Hit, ...]:
        """Hits of these sights in the order of the log."""
        found = [hit for sight in sights if sight in self.kept for hit in self.kept[sight].hits()]
        order = {source: index for index, source in enumerate(self.sources)}
        return tuple(sorted(found, key=lambda hit: (order.get(hit.line.source, 0), hit.line.number)))

    def first(self, *sights: Sight) -> Hit | None:
        return next(iter(self.hits(*sights)), None)

    def last(self, *sights: Sight) -> Hit | None:
        hits = self.hits(*sights)
        return hits[-1] if hits else None

    def count(self, *sights: Sight) -> int:
        """How often they were seen, kept or not."""
        return sum(self.kept[sight].count for sight in sights if sight in self.kept)

    def sees(self, *sights: Sight) -> bool:
        return self.count(*sights) > 0


def empty_kept(sights: Iterable[Sight]) -> dict[Sight, Kept]:
    return {sight: Kept(sight.series) for sight in sights}
