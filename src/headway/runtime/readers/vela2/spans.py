"""From the probabilities of words to spans: label each, settle what stands together, join, trim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt

from headway.runtime.readers.vela2.words import CJK, URL_START, Word

_BRACKETS: Final = "[](){}<>\u300c\u300d\u300e\u300f\u3010\u3011\u300a\u300b\u3008\u3009"
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
_EDGE: Final = frozenset(_BRACKETS + _QUOTES)
_URL_TAIL: Final = frozenset(".,;:!?)")
_IS_URL: Final = re.compile(URL_START, re.IGNORECASE)
_ONE_CJK: Final = re.compile(f"[{CJK}]")
# What stands together: a URL, a run of letters, digits and the signs that addresses hold, or one other character.
_URL_BODY: Final = rf"[^\s\])}}>\u300c\u300d\u300e\u300f\"'\u201c\u201d{CJK}]"
_UNIT: Final = re.compile(rf"{URL_START}{_URL_BODY}+?(?=[.,;:!?]*(?!{_URL_BODY}))|(?:(?![{CJK}])[^\W_]|[@._\-+])+|\S")


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """Code points [start, end). `label` is an index; `probability` the mean over the words."""

    start: int
    end: int
    label: int
    probability: float


def find_spans(probabilities: npt.NDArray[np.float64], words: Sequence[Word], text: str, threshold: float) -> list[LabelledSpan]:
    """probabilities [words, labels]. A word has its likeliest label if that is likelier than `threshold` (as float32 numbers,
    the way the models' thresholds were chosen)."""
    if not words:
        return []
    p = probabilities.astype(np.float32)
    best = p.argmax(1)
    labels = np.where(p[np.arange(len(words)), best] > np.float32(threshold), best, -1)
    _settle(labels, p, _units(text, words))
    spans = []
    for label, run in groupby(range(len(words)), key=lambda index: int(labels[index])):
        members = list(run)
        start, end = trimmed(text, words[members[0]].start, words[members[-1]].end)
        if label >= 0 and start < end:
            spans.append(LabelledSpan(start, end, label, float(np.mean(p[members, label]))))
    return spans


def _units(text: str, words: Sequence[Word]) -> list[int]:
    """The unit that each word begins in; -1 for none."""
    bounds = [match.span() for match in _UNIT.finditer(text)]
    found, place = [], 0
    for word in words:
        while place < len(bounds) and bounds[place][1] <= word.start:
            place += 1
        inside = place < len(bounds) and bounds[place][0] <= word.start
        found.append(place if inside else -1)
    return found


def _settle(labels: npt.NDArray[np.int64], p: npt.NDArray[np.float32], units: Sequence[int]) -> None:
    """Within a unit the label with the largest sum of probabilities wins, and words between labelled ones get it too."""
    for unit, run in groupby(range(len(units)), key=lambda index: units[index]):
        members = list(run)
        labelled = [index for index in members if labels[index] >= 0]
        if unit < 0 or not labelled:
            continue
        votes: dict[int, float] = {}
        for index in labelled:
            votes[int(labels[index])] = votes.get(int(labels[index]), 0.0) + float(p[index, labels[index]])
        labels[labelled[0] : labelled[-1] + 1] = max(votes, key=lambda label: votes[label])


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without spaces, brackets and quotes at the ends; a URL without what follows it."""
    while start < end and (text[start].isspace() or text[start] in _EDGE):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in _EDGE):
        end -= 1
    if _IS_URL.match(text, start):
        cjk = _ONE_CJK.search(text, start, end)
        end = cjk.start() if cjk else end
        while end > start and (text[end - 1] in _URL_TAIL or text[end - 1] in _EDGE or text[end - 1].isspace()):
            end -= 1
    return start, end
