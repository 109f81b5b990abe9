"""Prompt lookup: what followed the last few tokens the first time that they stood here will follow them again.

The longest end of the text, of `shortest` to `longest` tokens, that also stands earlier; the earliest place wins (as in vLLM:
prompt_lookup_min, prompt_lookup_max).
"""

from __future__ import annotations

from collections.abc import Sequence as Many

from headway.engine.sequence import Sequence
from headway.engine.speculation.proposer import Ask
from headway.engine.speculation.sequence_state import state_of
from headway.engine.speculation.token_text import longest_match


class NgramProposer:
    seconds_per_token = 0.0

    def __init__(self, shortest: int, longest: int):
        self._shortest = shortest
        self._longest = longest

    def propose(self, asks: Many[Ask]) -> list[list[int]]:
        return [self._guess(ask) for ask in asks]

    def _guess(self, ask: Ask) -> list[int]:
        text = state_of(ask.sequence).text
        text.follow(ask.sequence.tokens)
        ids = text.ids
        match = longest_match(ids, ids, self._longest)
        if match.length < self._shortest:
            return []
        start = int(match.ends[0])
        return [int(t) for t in ids[start : start + ask.limit]]

    def preempted(self, sequence: Sequence) -> None:
        """The text is still the same."""

    def ended(self, sequence: Sequence) -> None:
        """Its text ends with it."""
