"""How much each part of a text matters for a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.plugins.lexical import bm25_scores
from headway.router.plugins.models import embedded


class ScoringUnavailableError(Exception):
    """The embedding model did not answer."""


class Scorer(Protocol):
    async def score(self, query: str, chunks: Sequence[str]) -> Sequence[float]: ...


class WordScorer:
    """BM25."""

    async def score(self, query: str, chunks: Sequence[str]) -> Sequence[float]:
        return [float(number) for number in bm25_scores(query, chunks)]


@dataclass(frozen=True, slots=True)
class VectorScorer:
    """The cosine with the query; `hybrid`: half of it, half BM25, each on a scale from 0 to 1. hybrid goes on with BM25 alone when the model does not
    answer; embedding raises ScoringUnavailableError."""

    calls: StageCalls
    deployment: str
    method: Literal["embedding", "hybrid"]

    async def score(self, query: str, chunks: Sequence[str]) -> Sequence[float]:
        made = await embedded(self.calls, self.deployment, [query, *chunks])
        if isinstance(made, Unanswered):
            if self.method == "embedding":
                raise ScoringUnavailableError(made.reason)
            return [float(number) for number in bm25_scores(query, chunks)]
        likeness = made.vectors[1:] @ made.vectors[0]
        if self.method == "embedding":
            return [float(number) for number in likeness]
        return [float(number) for number in (_scaled(likeness) + _scaled(bm25_scores(query, chunks))) / 2]


def _scaled(numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    least, most = float(numbers.min()), float(numbers.max())
    return (numbers - least) / (most - least) if most > least else np.zeros_like(numbers)
