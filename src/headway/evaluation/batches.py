"""batches: requests put together so that one forward pass does as many tokens as it should, each beginning computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headway.evaluation.scoring import ScoringRequest


@dataclass(frozen=True, slots=True)
class Placed:
    """Request number `index`; its first `shared` tokens are computed by request number `leader` of the same batch."""

    index: int
    request: ScoringRequest
    shared: int = 0
    leader: int = 0

    @property
    def new(self) -> int:
        return len(self.request.tokens) - self.shared


@dataclass(slots=True)
class Batch:
    """`tokens`: how many are computed."""

    members: list[Placed] = field(default_factory=list)
    tokens: int = 0


def batches(requests: Sequence[ScoringRequest], most: int, block: int) -> Iterator[Batch]:
    """In order; a batch computes at most `most` tokens, or is a single longer request. What is shared is whole blocks, and ends
    before the token from which the first score is read. Requests that begin alike should be neighbours."""
    batch = Batch()
    leader: Placed | None = None
    for index, request in enumerate(requests):
        placed = Placed(index, request) if leader is None else _beside(leader, index, request, block)
        if batch.members and batch.tokens + placed.new > most:
            yield batch
            batch, placed = Batch(), Placed(index, request)
        if not placed.shared:
            leader = placed
        batch.members.append(placed)
        batch.tokens += placed.new
    if batch.members:
        yield batch


def _beside(leader: Placed, index: int, request: ScoringRequest, block: int) -> Placed:
    most = min(len(leader.request.tokens), request.start - 1)
    alike = next((i for i in range(most) if leader.request.tokens[i] != request.tokens[i]), most)
    return Placed(index, request, alike // block * block, leader.index)
