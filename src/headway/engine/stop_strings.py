"""Finds stop strings in text that arrives in pieces, holding back as little as possible.

The answer depends on the whole text only, not on how it is cut into pieces: streamed and whole texts end alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


class Piece(NamedTuple):
    """Text that is certain now, and the stop string that ended the text, if one did."""

    text: str
    matched: str | None = None


class StopStrings:
    """The stop strings of one sequence.

    The match that starts earliest wins, whatever the order of the list; of those that start together, the one that
    ends first. While a string that starts before a complete match can still become whole, the match waits for it: with
    "bc" and "abcd" the text "abc" is undecided. The text is cut at the first character of the match, or behind the
    match with `include`.

    Cost: every character of the text is looked at once for each stop string (Knuth, Morris and Pratt, 1977).
    """

    __slots__ = ("_automata", "_best", "_first_letters", "_include", "_position", "matched")

    def __init__(self, stops: Iterable[str], include: bool = False):
        self._automata = [_Automaton(stop) for stop in dict.fromkeys(stops)]
        self._first_letters = frozenset(automaton.stop[0] for automaton in self._automata)
        self._include = include
        self._position = 0  # characters fed so far
        self._best: tuple[int, int, str] | None = None  # start, end, string of the best match that may still be beaten
        self.matched: str | None = None

    def feed(self, text: str, may_match: bool = True) -> Piece:
        """Take new text and return what is certain. After a match all further text is dropped.

        With `may_match` false no match may end inside `text`; one that begins in it and ends in later text counts. This
        is how vLLM treats `min_tokens`: pass false for the text of the first `min_tokens` tokens.
        """
        if self.matched is not None:
            return Piece("", self.matched)
        if self._idle and self._first_letters.isdisjoint(text):
            self._position += len(text)
            return Piece(text)
        held, before = self._held(), self._position
        for letter in text:
            self._position += 1
            for automaton in self._automata:
                if automaton.step(letter) and may_match:
                    self._consider(automaton.stop)
            if self._best is not None and self._open_start() >= self._best[0]:
                return self._finish(held, text, before)
        known = len(held) + len(text)
        certain = known - (self._position - self._open_start())
        return Piece(_head(held, text, certain))

    def flush(self) -> str:
        """The text held back, now that no more comes. `matched` tells whether a waiting match ended it."""
        held = self._held()
        if self._best is not None and self.matched is None:
            return self._finish(held, "", self._position).text
        for automaton in self._automata:
            automaton.state = 0
        return held

    @property
    def _idle(self) -> bool:
        return not any(automaton.state for automaton in self._automata)

    def _open_start(self) -> int:
        """Where the longest text begins that may still become a stop string."""
        return self._position - max((automaton.state for automaton in self._automata), default=0)

    def _held(self) -> str:
        """The text held back: always the beginning of a stop string, so it need not be stored."""
        longest = max(self._automata, key=lambda automaton: automaton.state, default=None)
        return "" if longest is None else longest.stop[: longest.state]

    def _consider(self, stop: str) -> None:
        found = (self._position - len(stop), self._position, stop)
        if self._best is None or found < self._best:
            self._best = found

    def _finish(self, held: str, text: str, before: int) -> Piece:
        assert self._best is not None
        start, end, self.matched = self._best
        first = before - len(held)  # position of the first character that was not given out
        piece = Piece(_head(held, text, (end if self._include else start) - first), self.matched)
        self._automata = []
        return piece


class _Automaton:
    """Where one stop string stands: the last `state` characters of the text are its first ones."""

    __slots__ = ("_borders", "state", "stop")

    def __init__(self, stop: str):
        if not stop:
            raise ValueError("a stop string must not be empty")
        self.stop = stop
        self.state = 0
        self._borders = _borders(stop)

    def step(self, letter: str) -> bool:
        """Take one character; true when the stop string ends with it. Its last border is then the state."""
        state = self.state
        while state and self.stop[state] != letter:
            state = self._borders[state]
        if self.stop[state] == letter:
            state += 1
        whole = state == len(self.stop)
        self.state = self._borders[state] if whole else state
        return whole


@lru_cache(maxsize=64)  # the sequences of a request have the same stop strings
def _borders(word: str) -> tuple[int, ...]:
    """For each length, the longest proper beginning of word[:length] that is also its end."""
    borders = [0] * (len(word) + 1)
    length = 0
    for i in range(1, len(word)):
        while length and word[i] != word[length]:
            length = borders[length]
        if word[i] == word[length]:
            length += 1
        borders[i + 1] = length
    return tuple(borders)


def _head(held: str, text: str, length: int) -> str:
    """The first `length` characters of held + text, without joining them first."""
    return held[:length] if length <= len(held) else held + text[: length - len(held)]
