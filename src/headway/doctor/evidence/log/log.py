"""A log that was read: for every sight its hits, and the counts that say what was not kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import Sight

_ENDS: Final = 64
_SERIES: Final = 2048


class Kept:
    """The hits of one sight in bounded memory: the first and last 64, or every n-th of a series of any length."""

    __slots__ = ("_first", "_last", "_series", "_stride", "_thin", "count")

    def __init__(self, series: bool) -> None:
        self.count = 0
        self._series = series
        self._first: list[Hit] = []
        self._last: deque[Hit] = deque(maxlen=_ENDS)
        self._thin: list[Hit] = []
        self._stride = 1

    def add(self, hit: Hit) -> None:
        self.count += 1
        if not self._series:
            if len(self._first) < _ENDS:
                self._first.append(hit)
            else:
                self._last.append(hit)
        elif (self.count - 1) % self._stride == 0:
            self._thin.append(hit)
            if len(self._thin) >= _SERIES:
                self._thin = self._thin[::2]
                self._stride *= 2

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
