"""TokenText: a growing text of token ids in which the end can be looked up quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Match:
    """The last `length` tokens of what was looked up also stand in front of each of `ends`, ascending; `ends` is empty without a match."""

    length: int
    ends: npt.NDArray[np.intp]


class TokenText:
    """An array of ids that grows at its end. 4 bytes a token."""

    def __init__(self) -> None:
        self._ids: Ids = np.empty(256, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> Ids:
        return self._ids[: self._count]

    def extend(self, tokens: Sequence[int]) -> None:
        count = self._count + len(tokens)
        if count > len(self._ids):
            grown = np.empty(max(count, 2 * len(self._ids)), np.int32)
            grown[: self._count] = self.ids
            self._ids = grown
        self._ids[self._count : count] = tokens
        self._count = count

    def follow(self, tokens: Sequence[int]) -> None:
        """Become `tokens`, of which what is here is the beginning."""
        if self._count < len(tokens):
            self.extend(tokens[self._count :])

    def keep_last(self, count: int) -> None:
        kept = self.ids[-count:].copy() if count else self._ids[:0].copy()
        self._ids[: len(kept)] = kept
        self._count = len(kept)


def longest_match(text: Ids, wanted: Ids, most: int) -> Match:
    """Where in `text` the longest end of `wanted`, of at most `most` tokens, stands, always with a token behind it.

    One comparison of the whole text with the last token, then of the few places that are left with the tokens before it.
    """
    ends = np.flatnonzero(text[:-1] == wanted[-1]) + 1 if len(text) > 1 and len(wanted) else np.empty(0, np.intp)
    length = min(len(ends), 1)
    while length and length < min(most, len(wanted)):
        longer = ends[ends > length]
        longer = longer[text[longer - 1 - length] == wanted[-1 - length]]
        if not len(longer):
            break
        ends, length = longer, length + 1
    return Match(length, ends)
