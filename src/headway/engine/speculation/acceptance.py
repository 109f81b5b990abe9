"""Acceptance: how often guesses have been right lately."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Acceptance:
    """Right and wrong guesses, older ones weighing less. A guess behind a wrong one was not tested and does not count."""

    right: float
    wrong: float
    memory: float  # what is left of the weight of a verification at the next one

    @property
    def rate(self) -> float:
        """Between 0 and 1, the probability that the next guess is right."""
        return self.right / (self.right + self.wrong)

    def add(self, proposed: int, accepted: int) -> None:
        self.right = self.right * self.memory + accepted
        self.wrong = self.wrong * self.memory + (accepted < proposed)

    def follower(self, weight: float, memory: float) -> Acceptance:
        """A new one that expects the same rate until `weight` guesses of its own have been tested."""
        return Acceptance(self.rate * weight, (1 - self.rate) * weight, memory)
