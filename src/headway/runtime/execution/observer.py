"""What the execution of one model tells whoever counts."""

from __future__ import annotations

from typing import Protocol


class ExecutionObserver(Protocol):
    """Called on several threads, mostly with the scheduler's lock held: must be quick and must not call back."""

    def on_forward(self, rows: int, tokens: int, seconds: float) -> None:
        """One forward pass has ended, well or badly."""

    def on_queued(self, seconds: float) -> None:
        """A round of a job is complete; so long it waited."""

    def on_cache(self, hits: int, misses: int) -> None:
        """Distinct rows of a round that were, and were not, in the result cache."""

    def on_late(self, rows: int) -> None:
        """Rows were given up because their deadline had passed."""


class Unobserved:
    """Nobody counts."""

    def on_forward(self, rows: int, tokens: int, seconds: float) -> None: ...

    def on_queued(self, seconds: float) -> None: ...

    def on_cache(self, hits: int, misses: int) -> None: ...

    def on_late(self, rows: int) -> None: ...
