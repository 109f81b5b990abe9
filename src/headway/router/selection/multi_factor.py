"""multi_factor: quality, latency, cost and load of the candidates, weighed against each other or one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.router.config.document.algorithms import MultiFactorPriority, MultiFactorSelection, MultiFactorSLO
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.factors import cost, quality, spread
from headway.router.selection.ranking import Ranking, by_score
from headway.router.selection.requirements import estimated_tokens
from headway.router.upstream.activity import ModelActivity
from headway.router.upstream.latencies import LatencyBook, Metric

FACTORS = ("quality", "latency", "cost", "load")
_EQUAL_WEIGHT = 0.25


@dataclass(frozen=True, slots=True)
class MultiFactor:
    """Each factor is spread over this request's candidates from 0 (worst) to 1 (best), 0.5 when all are equal, 0 for a model of which it is not known.

    Models over a limit of `slo` are left out first (a number that is not known breaks no limit); when none is left, `on_no_candidates` says what happens.
    """

    settings: MultiFactorSelection
    book: LatencyBook
    activity: ModelActivity
    domains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    type: str = "multi_factor"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        within = [candidate for candidate in candidates if self._within(candidate, self.settings.slo)]
        if not within:
            return self._none_within(candidates)
        factors = self._factors(within, context)
        objective = self.settings.objective
        if objective is not None and objective.strategy == "lexicographic":
            return _lexicographic(within, factors, objective.priorities or ())
        weights = self._weights()
        scores = {each.name: sum(weights[name] * factors[name][each.name] for name in FACTORS) for each in within}
        return Ranking(by_score(within, scores), "the best sum of weighted factors", scores)

    def deployments(self) -> frozenset[str]:
        return frozenset()

    def _weights(self) -> Mapping[str, float]:
        given = self.settings.weights
        named = given.model_dump(exclude_none=True) if given else {}
        return {name: named.get(name, 0.0) if named else _EQUAL_WEIGHT for name in FACTORS}

    def _factors(self, candidates: Sequence[Candidate], context: RequestContext) -> Mapping[str, Mapping[str, float]]:
        output = self.settings.expected_output_tokens
        prices = cost(candidates, estimated_tokens(context.body) if output is not None else 0, output)
        load = {each.name: float(self.activity.in_flight(each.model)) for each in candidates}
        return {
            "quality": spread(quality(candidates, context, self.domains), candidates),
            "latency": spread(self._latencies(candidates), candidates, less_is_better=True),
            "cost": spread(prices, candidates, less_is_better=True),
            "load": spread(load, candidates, less_is_better=True),
        }

    def _latencies(self, candidates: Sequence[Candidate]) -> dict[str, float]:
        metric: Metric = self.settings.latency_metric or "tpot"
        seen = ((each.name, self.book.percentile(each.model, metric, self.settings.latency_percentile)) for each in candidates)
        return {model: value for model, value in seen if value is not None}

    def _within(self, candidate: Candidate, slo: MultiFactorSLO | None) -> bool:
        if slo is None:
            return True
        percent, model = self.settings.latency_percentile, candidate.model
        tpot, ttft = self.book.percentile(model, "tpot", percent), self.book.percentile(model, "ttft", percent)
        found: tuple[tuple[float | None, float | None], ...] = (
            (None if tpot is None else tpot * 1000, slo.max_tpot_ms),
            (None if ttft is None else ttft * 1000, slo.max_ttft_ms),
            (cost([candidate]).get(candidate.name), slo.max_cost_per_1m),
            (self.activity.in_flight(model), slo.max_inflight),
        )
        return all(value is None or limit is None or value <= limit for value, limit in found)

    def _none_within(self, candidates: Sequence[Candidate]) -> Ranking:
        policy = self.settings.on_no_candidates
        if policy == "fail":
            return Ranking((), "no model is within the limits of slo", fallback="slo", failed=True)
        if policy == "first":
            return Ranking(candidates, "no model is within the limits of slo: the first one", fallback="slo")
        prices = cost(candidates)
        order = by_score(candidates, {model: -price for model, price in prices.items()})
        return Ranking(order, "no model is within the limits of slo: the cheapest one", fallback="slo")


def _lexicographic(candidates: Sequence[Candidate], factors: Mapping[str, Mapping[str, float]], priorities: Sequence[MultiFactorPriority]) -> Ranking:
    """Of the models within `tolerance` of the best one by the first factor those that are best by the second, and so on; declared order in the end."""
    left = list(candidates)
    for priority in priorities:
        values = factors[priority.factor]
        best = max(values[each.name] for each in left)
        left = [each for each in left if values[each.name] >= best - priority.tolerance - 1e-12]
    order = [*left, *(each for each in candidates if each not in left)]
    return Ranking(order, "the best by the factors in their order", dict(factors[priorities[0].factor]))
