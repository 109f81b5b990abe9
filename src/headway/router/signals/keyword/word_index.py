"""WordIndex: all words of all rules, found in one pass over a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import ahocorasick_rs

from headway.router.signals.keyword.boundaries import joins_words, stands_alone
from headway.router.signals.keyword.folding import fold

_PIECE = 65_536  # characters searched at once: bounds what the matches of a hostile text occupy


class WordIndex:
    """Words are numbered by their position in `words`; two that fold to the same text are found together. An empty word is never found."""

    def __init__(self, words: Sequence[str], case_sensitive: bool = False, joins: Callable[[str], bool] = joins_words) -> None:
        self._joins = joins
        numbers: dict[str, list[int]] = {}
        for number, word in enumerate(words):
            folded = fold(word.strip(), case_sensitive)
            if folded:
                numbers.setdefault(folded, []).append(number)
        self._numbers: list[Sequence[int]] = list(numbers.values())
        self._longest = max(map(len, numbers), default=0)
        self._automaton = ahocorasick_rs.AhoCorasick(list(numbers), store_patterns=False) if numbers else None

    def first(self, folded: str) -> dict[int, tuple[int, int]]:
        """Where each word that occurs in `folded` (text that went through `fold`) occurs first; half-open ranges of it."""
        found: dict[int, tuple[int, int]] = {}
        missing = len(self._numbers)
        for pattern, start, end in self._matches(folded):
            numbers = self._numbers[pattern]
            if numbers[0] in found or not stands_alone(folded, start, end, self._joins):
                continue
            for number in numbers:
                found[number] = (start, end)
            missing -= 1
            if not missing:
                break
        return found

    def occurrences(self, folded: str) -> Iterator[tuple[int, int, int]]:
        """(number, start, end) of every occurrence, words that overlap included; of words that fold to the same text only the first is named."""
        for pattern, start, end in self._matches(folded):
            if stands_alone(folded, start, end, self._joins):
                yield self._numbers[pattern][0], start, end

    def _matches(self, folded: str) -> Iterable[tuple[int, int, int]]:
        """(pattern, start, end) of every occurrence, in the order of their ends within a piece of the text."""
        if self._automaton is None:
            return ()
        if len(folded) <= _PIECE:
            return self._automaton.find_matches_as_indexes(folded, overlapping=True)
        return self._in_pieces(self._automaton, folded)

    def _in_pieces(self, automaton: ahocorasick_rs.AhoCorasick, folded: str) -> Iterator[tuple[int, int, int]]:
        overlap = self._longest - 1
        for begin in range(0, len(folded), _PIECE):
            before = min(overlap, begin)
            for pattern, start, end in automaton.find_matches_as_indexes(folded[begin - before : begin + _PIECE], overlapping=True):
                if end > before:  # what ends earlier belongs to the piece before
                    yield pattern, start + begin - before, end + begin - before
