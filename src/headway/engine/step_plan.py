"""StepPlan: what one engine step computes."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, field

from headway.engine.sequence import Sequence


@dataclass(slots=True)
class Chunk:
    """Tokens [start, start + count) of a sequence. `samples`: the chunk reaches the last known token, so a next one is drawn.

    The last of the `count` tokens may be `drafts`: guesses at what follows the known ones, of which the last `rejected` turned out wrong."""

    sequence: Sequence
    start: int
    count: int
    samples: bool
    drafts: Many[int] = ()
    rejected: int = 0


@dataclass(slots=True)
class StepPlan:
    """Chunks of one forward pass, and what happened while planning it."""

    chunks: list[Chunk] = field(default_factory=list)
    preemptions: int = 0
    preempted_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    new_cached_tokens: int = 0  # prompt tokens that sequences admitted for the first time found in the cache
    transferred_tokens: int = 0  # of these, what came from another engine
    drafted: tuple[tuple[int, int], ...] = ()  # of each draft, tokens proposed and accepted; known after the step

    def __str__(self) -> str:
        """For the debug trace: who computes which positions, in the order of the plan; * where a token is sampled."""
        shares = (f"{c.sequence.request.id}.{c.sequence.index}[{c.start}:{c.start + c.count}]{'*' * c.samples}" for c in self.chunks)
        return f"{self.num_tokens} tokens, {self.preemptions} preempted: {' '.join(shares)}"

    @property
    def num_tokens(self) -> int:
        return sum(c.count for c in self.chunks)
