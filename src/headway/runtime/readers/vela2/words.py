"""The words of a text that Vela 2.0 models judge one by one, and the token at which each is read.

A word is a URL, an e-mail address, a handle, one CJK character, a run of letters and digits (joined by - or _), or any
other single character. Offsets are code points.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# The ranges are those of the models, one of them (8C48 to FAFF) wider than its neighbours suggest: it takes in Hangul.
_CJK_RANGES: Final = (
    (0x2E80, 0x2FFF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x3100, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA4CF),
    (0xAC00, 0xD7AF), (0x8C48, 0xFAFF), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF),
)  # fmt: skip
CJK: Final = "".join(f"{chr(first)}-{chr(last)}" for first, last in _CJK_RANGES)
URL_START: Final = r"(?:https?://|www\.)"
_AFTER_URL: Final = re.escape(".,;:!?)]}>\"'") + "\u201d\u2019\u00bb"  # may follow a URL without being of it
# The parts of an address are as long as they may be; without bounds, dots alone would take quadratic time.
_KINDS: Final = (
    rf"{URL_START}[^\s{CJK}]+?(?=[{_AFTER_URL}]{{0,64}}(?![^\s{CJK}]))",
    r"[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}\.[a-z]{2,}",
    r"@[a-z0-9_]+",
    rf"[{CJK}]",
    rf"[^\W{CJK}]+(?:[-_][^\W{CJK}]+)*",
    r"\S",
)
_WORD: Final = re.compile("|".join(_KINDS), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """Code points [start, end) of the text. `token` is the first token that overlaps it, `last` the last one."""

    start: int
    end: int
    token: int
    last: int


def word_ranges(text: str) -> list[tuple[int, int]]:
    """Every word, in order."""
    return [match.span() for match in _WORD.finditer(text)]


def words_of(text: str, offsets: Sequence[tuple[int, int]]) -> list[Word]:
    """Words with their tokens, `offsets` of the tokens in code points. A word that no token covers is left out."""
    words: list[Word] = []
    place = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        while place < len(offsets) and (offsets[place][1] <= start or offsets[place][0] == offsets[place][1]):
            place += 1
        if place == len(offsets):
            break
        if offsets[place][0] >= end:
            continue
        last = place
        while last + 1 < len(offsets) and offsets[last + 1][0] < end:
            last += 1
        words.append(Word(start, end, place, last))
    return words
