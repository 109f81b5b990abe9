"""latency_aware: the model that has been the fastest of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.ranking import Ranking, by_score, without_choice
from headway.router.upstream.latencies import LatencyBook, Metric


@dataclass(frozen=True, slots=True)
class LatencyAware:
    """Compares the given percentiles of observed times. Each is divided by the least of the candidates, so that 1 is the fastest; with both, their
    mean counts. Models that were not observed come last; when none was, the declared order holds."""

    book: LatencyBook
    tpot_percentile: int | None = None
    ttft_percentile: int | None = None
    type: str = "latency_aware"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        relative: dict[str, list[float]] = {}
        wanted: tuple[tuple[Metric, int | None], ...] = (("tpot", self.tpot_percentile), ("ttft", self.ttft_percentile))
        for metric, percent in wanted:
            if not percent:
                continue
            seen = {each.name: value for each in candidates if (value := self.book.percentile(each.model, metric, percent)) is not None}
            least = min(seen.values(), default=0.0)
            for model, value in seen.items():
                relative.setdefault(model, []).append(value / least if least > 0 else 1.0)
        if not relative:
            return without_choice(candidates, "no_observations")
        slowness = {model: sum(values) / len(values) for model, values in relative.items()}
        order = by_score(candidates, {model: -value for model, value in slowness.items()})
        return Ranking(order, "the least observed latency", {model: 1 / value for model, value in slowness.items()})

    def deployments(self) -> frozenset[str]:
        return frozenset()
