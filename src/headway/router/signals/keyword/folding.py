"""Folded text: what two spellings of the same words have in common, and where it stands in the original."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_WALKED = 100_000  # characters
_JAMO = "\u1160-\u11ff\ud7b0-\ud7ff"  # vowels and final consonants, which compose with what is before them
_MARKS = "".join(sorted(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code)).startswith("M")))
_CLUSTER = re.compile(f"[^{_MARKS}{_JAMO}]?[{_MARKS}{_JAMO}]*", re.DOTALL)
"""A character with everything that may compose with it. Normalising clusters one by one equals normalising the whole."""


_HALF = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, which JSON can carry and which libraries refuse. As long as before."""
    return _HALF.sub("\ufffd", text)


def fold(text: str, case_sensitive: bool = False) -> str:
    """`text` in NFC, without differences of case unless they matter (full case folding: `ẞ` and `SS` become `ss`)."""
    if text.isascii():
        return text if case_sensitive else text.lower()
    composed = unicodedata.normalize("NFC", whole_characters(text))
    return composed if case_sensitive else unicodedata.normalize("NFC", composed.casefold())


def original_spans(text: str, case_sensitive: bool, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int] | None]:
    """Half-open ranges of `fold(text)` as ranges of `text`, in code points. A range that cuts a character covers the whole character.

    None for what lies further behind than it is worth walking through a text that folding makes longer or shorter.
    """
    if not spans or _keeps_places(text, case_sensitive):
        return list(spans)
    last = max(end for _, end in spans)
    starts: list[int] = []  # of each folded character: the range of its cluster in the text
    ends: list[int] = []
    for cluster in _CLUSTER.finditer(text, 0, _WALKED):
        folded = fold(cluster[0], case_sensitive)
        length = len(folded)
        if list(folded) == [fold(letter, case_sensitive) for letter in cluster[0]]:  # else marks may also have changed places
            starts.extend(range(cluster.start(), cluster.end()))
            ends.extend(range(cluster.start() + 1, cluster.end() + 1))
        else:
            starts.extend([cluster.start()] * length)
            ends.extend([cluster.end()] * length)
        if len(ends) >= last:
            break
    return [(starts[start], ends[end - 1]) if end <= len(ends) else None for start, end in spans]


def _keeps_places(text: str, case_sensitive: bool) -> bool:
    """Whether every character of `text` folds to one character. Case folding only ever lengthens, so equal lengths mean one to one."""
    if text.isascii():
        return True
    if not unicodedata.is_normalized("NFC", text):
        return False
    return case_sensitive or len(text) == len(text.casefold()) == len(fold(text))
