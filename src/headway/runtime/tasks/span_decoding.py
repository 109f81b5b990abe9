"""Labels of tokens -> spans of the text.

The rule: the best label of each token. B-X opens a span, I-X continues an open X or opens one, anything else closes; two spans
that touch stay apart when the second begins with B-. Tokens of white space, and tokens without a place in the text, neither
continue nor close. A token that shares a character with the span before it (bytes of one character) belongs to it if
it is of the same entity. The probability of a span is the mean over its tokens. White space at its ends is cut off.

With a word strategy, all tokens of a word first get one label: that of its first token, of its surest token, or the best
of the mean over its tokens; its probability is made in the same way. A word is what stands between white space; characters
of scripts that put no space between words are words by themselves. Punctuation at the ends of a word that the model
itself calls O stays outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from headway.decisions.reader import FoundSpan
from headway.runtime.tasks.tags import Tag

WordStrategy = Literal["token", "first", "max", "average"]
WORD_STRATEGIES: Final[tuple[WordStrategy, ...]] = ("token", "first", "max", "average")
Offset = tuple[int, int]
# Han, kana, Thai, Lao, Khmer, Burmese: no spaces between words.
_WORD: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
                          r"|[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")  # fmt: skip


@dataclass(slots=True)
class _Growing:
    entity: str
    start: int
    end: int
    probabilities: list[float]


def decode_spans(
    text: str, offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64], tags: Sequence[Tag], words: WordStrategy = "token"
) -> list[FoundSpan]:
    """`offsets`: code points of each token; `probabilities` [tokens, labels]. Spans in order of the text."""
    if not len(offsets):
        return []
    labels = probabilities.argmax(1)
    sure = probabilities[np.arange(len(labels)), labels]
    if words != "token":
        offsets, labels, sure = _by_word(text, offsets, probabilities, tags, words)
    grown: list[_Growing] = []
    is_open = False
    for (start, end), label, probability in zip(offsets, labels.tolist(), sure.tolist(), strict=True):
        if start == end or text[start:end].isspace():
            continue
        tag = tags[label]
        if tag.entity is None:
            is_open = False
            continue
        last = grown[-1] if grown else None
        if last is not None and last.entity == tag.entity and ((is_open and not tag.opens) or start < last.end):
            last.end = max(last.end, end)
            last.probabilities.append(probability)
        else:
            grown.append(_Growing(tag.entity, start, end, [probability]))
        is_open = not tag.closes
    return [span for one in grown if (span := trimmed(text, one.entity, one.start, one.end, float(np.mean(one.probabilities)))) is not None]


def trimmed(text: str, label: str, start: int, end: int, probability: float) -> FoundSpan | None:
    """The span without white space at its ends; None when nothing is left."""
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    end = start + len(inside.strip())
    return FoundSpan(label, start, end, text[start:end], probability) if end > start else None


def _by_word(
    text: str, offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64], tags: Sequence[Tag], words: WordStrategy
) -> tuple[list[Offset], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Words in place of tokens: where they are, their labels, their probabilities."""
    places: list[Offset] = []
    labels: list[int] = []
    sure: list[float] = []
    for tokens in _tokens_of_words(text, offsets):
        kept = _without_edges(text, offsets, probabilities, tags, tokens)
        rows = probabilities[kept]
        if words == "first":
            chosen = rows[0]
        elif words == "max":
            chosen = rows[int(rows.max(1).argmax())]
        else:
            chosen = rows.mean(0)
        labels.append(int(chosen.argmax()))
        sure.append(float(chosen.max()))
        places.append((min(offsets[t][0] for t in kept), max(offsets[t][1] for t in kept)))
    return places, np.array(labels, dtype=np.int64), np.array(sure, dtype=np.float64)


def _tokens_of_words(text: str, offsets: Sequence[Offset]) -> list[list[int]]:
    """Numbers of the tokens that begin in each word, for words that have any; leading white space of a token does not count."""
    found: list[list[int]] = []
    ends = iter(_WORD.finditer(text))
    word = next(ends, None)
    fresh = True
    for number, (start, end) in enumerate(offsets):
        inside = text[start:end]
        first = start + len(inside) - len(inside.lstrip())
        if first == end:
            continue
        while word is not None and word.end() <= first:
            word, fresh = next(ends, None), True
        if fresh:
            found.append([])
            fresh = False
        found[-1].append(number)
    return found


def _without_edges(
    text: str, offsets: Sequence[Offset], probabilities: npt.NDArray[np.float64], tags: Sequence[Tag], tokens: list[int]
) -> list[int]:
    """Without punctuation at both ends that the model calls O; everything when nothing else is in the word."""

    def is_edge(token: int) -> bool:
        inside = text[slice(*offsets[token])].strip()
        return tags[int(probabilities[token].argmax())].entity is None and not any(c.isalnum() for c in inside)

    first, last = 0, len(tokens)
    while first < last and is_edge(tokens[first]):
        first += 1
    while last > first and is_edge(tokens[last - 1]):
        last -= 1
    return tokens[first:last] or tokens
