"""Parts of a state as tokens, what of them fits into one input, and windows over what does not."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headway.runtime.readers.vela2.state import Role
from headway.runtime.readers.vela2.words import Word, words_of

LEAST_UNREAD: Final = 64  # tokens that a part keeps that nobody reads, until there is no other way
UNCOVERED: Final = -30.0  # logit of a word in no window


@dataclass(frozen=True, slots=True)
class PartTokens:
    """`words` for parts that a span question reads. `first_word`: the index of the first of them in the whole part."""

    role: Role
    ids: tuple[int, ...]
    words: tuple[Word, ...] = ()
    first_word: int = 0

    def window(self, start: int, end: int) -> PartTokens:
        """Tokens [start, end), and the words whose first token is among them, counted from `start`."""
        begin = bisect_left(self.words, start, key=lambda word: word.token)
        stop = bisect_left(self.words, end, key=lambda word: word.token)
        moved = tuple(replace(word, token=word.token - start, last=word.last - start) for word in self.words[begin:stop])
        return PartTokens(self.role, self.ids[start:end], moved, self.first_word + begin)


def part_tokens(role: Role, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]] | None) -> PartTokens:
    """With `offsets`, the words of the text too."""
    return PartTokens(role, tuple(ids), () if offsets is None else tuple(words_of(text, offsets)))


class DoesNotFit(ValueError):
    """The questions alone are longer than the model's input."""


def kept_lengths(schema: int, parts: Sequence[PartTokens], most: int, read: frozenset[Role]) -> dict[Role, int]:
    """How many tokens of each part fit beside `schema` other tokens into `most`.

    Parts that nobody reads give way first, down to 64 tokens and then to one; then those that are read. Each time in their
    order. Raises DoesNotFit.
    """
    lengths = {part.role: len(part.ids) for part in parts}

    def over() -> int:
        return schema + sum(lengths.values()) - most

    unread = [part.role for part in parts if part.role not in read]
    for roles, least in ((unread, LEAST_UNREAD), (unread, 1), ([part.role for part in parts if part.role in read], 1)):
        for role in roles:
            if over() > 0:
                lengths[role] = max(min(lengths[role], least), lengths[role] - over())
    if over() > 0:
        raise DoesNotFit(f"the questions alone exceed the input by {over()} tokens")
    return lengths


def are_whole(parts: Sequence[PartTokens], kept: Mapping[Role, int], roles: frozenset[Role]) -> bool:
    """Whether nothing of these parts is cut."""
    return all(kept[part.role] == len(part.ids) for part in parts if part.role in roles)


def token_windows(total: int, width: int, overlap: int) -> list[tuple[int, int]]:
    """Windows [start, end) of `width` tokens over `total`, each sharing at most `overlap` and at most a quarter of itself with
    the next; the last one ends at `total`."""
    stride = max(1, width - min(overlap, width // 4))
    windows = []
    start = 0
    while True:
        end = min(total, start + width)
        windows.append((start, end))
        if end == total:
            return windows
        start += stride


def word_windows(words: Sequence[Word], total: int, width: int, stride: int) -> list[tuple[int, int]]:
    """Windows that begin where words begin and cut none, unless a word alone is longer than a window."""
    starts = sorted({word.token for word in words})
    if not starts:
        return [(0, total)]
    windows = []
    start = 0
    while True:
        if start + width >= total:
            windows.append((start, total))
            return windows
        before = starts[bisect_left(starts, start + width) - 1]
        end = before if before > start else start + width
        windows.append((start, end))
        place = bisect_left(starts, start + stride)
        start = starts[place] if place < len(starts) and starts[place] < end else end


def uncovered(total: int, windows: Sequence[tuple[int, int]]) -> int:
    """How many of the tokens 0 to `total` are in no window. The windows are in the order of their starts."""
    reached = missing = 0
    for start, end in windows:
        missing += max(0, start - reached)
        reached = max(reached, end)
    return missing + max(0, total - reached)


def covers_words(words: Sequence[Word], windows: Sequence[tuple[int, int]]) -> bool:
    """Whether each word lies whole in some window: the first token of half a word says nothing about the word."""
    return all(any(start <= word.token and word.last < end for start, end in windows) for word in words)
