"""Where a keyword may begin and end.

A boundary is needed only at an edge where the keyword has a letter or digit of a script that puts spaces between words, and only a neighbour of
such a script breaks it: `board` is not in `dashboard`, `C++` is in `C++17`, `发票` is in `需要开发票`, `python` is in `用python写`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

_UNSPACED = (  # scripts written without spaces between words, or (Hangul) that attach endings to them
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, Khmer symbols
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x303F),  # CJK radicals, punctuation
    (0x3040, 0x33FF),  # kana, Bopomofo, Hangul compatibility Jamo, CJK compatibility
    (0x3400, 0x4DBF),  # CJK ideographs A
    (0x4E00, 0x9FFF),  # CJK ideographs
    (0xA000, 0xA4CF),  # Yi
    (0xA960, 0xA97F),  # Hangul Jamo A
    (0xAA60, 0xAADF),  # Myanmar A, Tai Viet
    (0xAC00, 0xD7FF),  # Hangul syllables, Jamo B
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFFDC),  # half-width kana and Hangul
    (0x1B000, 0x1B16F),  # kana supplements
    (0x20000, 0x3FFFF),  # CJK ideographs B and later
)


@lru_cache(4096)
def joins_words(character: str) -> bool:
    """Whether `character` is a letter, digit or mark of a script that separates words by spaces: two of them side by side are one word."""
    code = ord(character)
    if any(first <= code <= last for first, last in _UNSPACED):
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


def joins_identifiers(character: str) -> bool:
    """As `joins_words`, for codes such as TXN_DECLINE: an underscore joins too."""
    return character == "_" or joins_words(character)


def stands_alone(text: str, start: int, end: int, joins: Callable[[str], bool] = joins_words) -> bool:
    """Whether text[start:end] (not empty) is neither the end of a longer word nor the beginning of one."""
    if start > 0 and joins(text[start]) and joins(text[start - 1]):
        return False
    return not (end < len(text) and joins(text[end - 1]) and joins(text[end]))
