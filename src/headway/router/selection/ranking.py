"""What an algorithm makes of the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Ranking:
    """`order` has the best candidate first. `fallback` is a bounded word: why the algorithm could not choose and `order` is another one's;
    `failed` says that no model may answer. `scores` are by the candidates' names, comparable within one ranking. `confidence` is the probability of
    the first one, None for algorithms that have no probabilities."""

    order: Sequence[Candidate]
    reason: str
    scores: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    fallback: str | None = None
    failed: bool = False
    status: str = "selected"
    sampled: bool = False
    sampling_seed: int | None = None


class Algorithm(Protocol):
    """`type` as in the configuration. `deployments` are the model runtimes that it asks."""

    @property
    def type(self) -> str: ...

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        """Never raises for a model that does not answer. `candidates` are those that may answer this request, at least one."""
        ...

    def deployments(self) -> frozenset[str]: ...


def by_score(candidates: Sequence[Candidate], scores: Mapping[str, float]) -> list[Candidate]:
    """Best first; equal ones, and those without a score at the end, in declared order."""
    return sorted(candidates, key=lambda candidate: -scores.get(candidate.name, float("-inf")))


def without_choice(candidates: Sequence[Candidate], why: str) -> Ranking:
    """The declared order, because the algorithm has nothing to go by; `why` is a bounded word."""
    return Ranking(candidates, f"declared order: {why.replace('_', ' ')}", fallback=why)
