"""A sight: a text that programs print and that somebody here wants to see."""

from __future__ import annotations

import re
from typing import Final

REACH: Final = 3072


class Sight:
    """`anchors`: literal, case-sensitive pieces, one of which stands in every line that can match; lines without any are
    never decoded further, so they should be as long and rare as possible (at least four characters).
    `pattern` runs on the undressed text of such a line. `series`: hits are thinned evenly when there are very many,
    instead of keeping the first and last ones. `reach`: of a long line so many characters behind the anchor are looked
    at, which bounds what a pattern can cost. `below`: a sight that is looked for in the lines under a hit as well, without
    an anchor, until one does not match: the rows of a table. Two sights are equal only if they are the same object.
    """

    __slots__ = ("_compiled", "_flags", "_source", "anchors", "below", "reach", "series")

    def __init__(self, anchors: tuple[str, ...], source: str, series: bool, ignore_case: bool, reach: int, below: Sight | None = None) -> None:
        self.anchors = anchors
        self.below = below
        self.series = series
        self.reach = reach
        self._source = source
        self._flags = re.IGNORECASE if ignore_case else 0
        self._compiled: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when the first line with an anchor comes: most sights never meet one."""
        if self._compiled is None:
            self._compiled = re.compile(self._source, self._flags)
        return self._compiled

    def __repr__(self) -> str:
        return f"Sight({self._source!r})"


def sight(*anchors: str, pattern: str | None = None, series: bool = False, ignore_case: bool = False, reach: int = REACH, below: Sight | None = None) -> Sight:
    """A sight whose pattern is its only anchor, unless `pattern` is given."""
    if pattern is None:
        pattern = "|".join(re.escape(anchor) for anchor in anchors)
    enveloped = tuple(anchor.replace('"', '\\"') for anchor in anchors if '"' in anchor)  # as it stands inside a JSON envelope
    return Sight(anchors + enveloped, pattern, series, ignore_case, reach, below)
