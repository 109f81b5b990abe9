"""hybrid: experience, likeness of descriptions, value for money and cost in one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.router.config.document.algorithms import HybridSelection
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.factors import cost, quality, spread
from headway.router.selection.ranking import Ranking, by_score
from headway.router.selection.router_dc import RouterDC
from headway.router.upstream.activity import ModelActivity

_COST_QUALITY_TRADEOFF = 0.3


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Four parts between 0 and 1, weighed: `experience` (the share of a model's last requests that it answered), `router_dc` (likeness; 0 without an
    embedding model or an answer of it), `automix` (0.7 quality + 0.3 cheapness), `cost` (cheapness). With `normalize_scores` experience and likeness
    are spread over the candidates too. Of the models within `quality_gap_threshold` of the best score the cheapest is taken."""

    settings: HybridSelection
    activity: ModelActivity
    likeness: RouterDC | None = None
    domains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    type: str = "hybrid"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        settings = self.settings
        prices = cost(candidates)
        cheapness = spread(prices, candidates, less_is_better=True)
        qualities = spread(quality(candidates, context, self.domains), candidates)
        experience = {each.name: self.activity.experience(each.model) for each in candidates}
        likeness = await self._likeness(candidates, context)
        if settings.normalize_scores:
            experience, likeness = spread(experience, candidates), spread(likeness, candidates)
        scores = {}
        for each in candidates:
            model = each.name
            value = (1 - _COST_QUALITY_TRADEOFF) * qualities[model] + _COST_QUALITY_TRADEOFF * cheapness[model]
            scores[model] = (
                settings.experience_weight * experience[model]
                + settings.router_dc_weight * likeness.get(model, 0.0)
                + settings.automix_weight * value
                + settings.cost_weight * cheapness[model]
            )
        order = by_score(candidates, scores)
        near = [each for each in order if scores[each.name] >= scores[order[0].name] - settings.quality_gap_threshold]
        if prices:
            near.sort(key=lambda each: prices.get(each.name, float("inf")))
        best = near[0]
        reason = "the best weighted score" if best is order[0] else "the cheapest of the models that score alike"
        return Ranking([best, *(each for each in order if each is not best)], reason, scores)

    def deployments(self) -> frozenset[str]:
        return self.likeness.deployments() if self.likeness is not None else frozenset()

    async def _likeness(self, candidates: Sequence[Candidate], context: RequestContext) -> dict[str, float]:
        if self.likeness is None or not self.settings.router_dc_weight:
            return {}
        found = await self.likeness.similarities(context)
        return {} if isinstance(found, str) else {each.name: max(0.0, found[each.name]) for each in candidates}
