"""What a proposer is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Protocol

from headway.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Ask:
    """At most `limit` >= 1 guesses at what follows `sequence.tokens` are wanted."""

    sequence: Sequence
    limit: int


class Proposer(Protocol):
    """Guesses the next tokens. Nothing depends on the guesses being right, only the speed."""

    seconds_per_token: float
    """What one round of guesses, one token for each sequence, takes; 0 where it is not worth counting. Lengths are chosen before
    such a proposer is asked, and after one that costs nothing."""

    def propose(self, asks: Many[Ask]) -> list[list[int]]:
        """One list for each, possibly empty, of token ids of the served model's vocabulary."""
        ...

    def preempted(self, sequence: Sequence) -> None:
        """It lost its place; it may come back."""
        ...

    def ended(self, sequence: Sequence) -> None:
        """It will not be asked for again. Called once, also for sequences that were never asked for."""
        ...
