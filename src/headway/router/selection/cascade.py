"""confidence: models asked one after the other, until one is sure enough of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.router.config.document.algorithms import ConfidenceAlgorithm
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.factors import cost, parameters, quality, spread
from headway.router.selection.ranking import Ranking, by_score


@dataclass(frozen=True, slots=True)
class Cascade:
    """Only the order is chosen here; the models are asked where answers are fetched (`upstream/cascading.py`).

    `size`: by the `param_size` of the cards; `cost`: by price; `automix`: by quality and cheapness, weighed by `cost_quality_tradeoff`. Models of
    which that is not known come last, in declared order.
    """

    settings: ConfidenceAlgorithm
    domains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    type: str = "confidence"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        status = "execution_required" if len(candidates) > 1 else "selected"
        return Ranking(self._order(candidates, context), f"a cascade in the order of {self.settings.escalation_order}", status=status)

    def deployments(self) -> frozenset[str]:
        return frozenset()

    def _order(self, candidates: Sequence[Candidate], context: RequestContext) -> Sequence[Candidate]:
        order = self.settings.escalation_order
        if order == "declared":
            return candidates
        if order == "cost":
            return by_score(candidates, {model: -price for model, price in cost(candidates).items()})
        if order == "automix":
            share = self.settings.cost_quality_tradeoff
            cheap = spread(cost(candidates), candidates, less_is_better=True)
            good = spread(quality(candidates, context, self.domains), candidates)
            return by_score(candidates, {each.name: (1 - share) * good[each.name] + share * cheap[each.name] for each in candidates})
        return by_score(candidates, {each.name: -size for each in candidates if (size := parameters(each)) is not None})
