"""static and random: selection without looking at the request."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.factors import quality
from headway.router.selection.ranking import Ranking, by_score


@dataclass(frozen=True, slots=True)
class Static:
    """The best by `model_scores` of the matched domain, else by the weights of the modelRefs, else in declared order."""

    domains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    type: str = "static"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        scores = quality(candidates, context, self.domains)
        if not scores:
            return Ranking(candidates, "the first model of the decision")
        return Ranking(by_score(candidates, scores), "the model with the greatest score or weight", scores)

    def deployments(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True, slots=True)
class Random:
    """Each candidate with the same chance; a request's `sampling_seed` makes the choice repeatable."""

    type: str = "random"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        seed = context.sampling_seed if context.sampling_seed is not None else random.getrandbits(31)
        order = list(candidates)
        random.Random(seed).shuffle(order)
        return Ranking(order, "drawn at random", sampled=True, sampling_seed=seed)

    def deployments(self) -> frozenset[str]:
        return frozenset()
