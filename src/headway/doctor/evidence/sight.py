"""A sight: a text that programs print and that somebody here wants to see."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """`anchors`: literal, case-sensitive pieces, one of which stands in every line that can match; lines without any are
    never decoded further, so they should be as long and rare as possible (at least four characters).
    `pattern` runs on the undressed text of such a line. `series`: hits are thinned evenly when there are very many,
    instead of keeping the first and last ones. Two sights are equal only if they are the same object.
    """

    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    series: bool = field(default=False)


def sight(*anchors: str, pattern: str | None = None, series: bool = False, ignore_case: bool = False) -> Sight:
    """A sight whose pattern is its only anchor, unless `pattern` is given."""
    if pattern is None:
        pattern = "|".join(re.escape(anchor) for anchor in anchors)
    return Sight(anchors, re.compile(pattern, re.IGNORECASE if ignore_case else 0), series)
