"""DecisionSelector: chooses among the models of one decision."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from headway.errors import HeadwayError
from headway.router.request.context import RequestContext
from headway.router.selection.affinity.keeper import SessionKeeper
from headway.router.selection.candidates import Candidate
from headway.router.selection.ranking import Algorithm, Ranking, without_choice
from headway.router.selection.requirements import Requirements
from headway.router.selection.result import ALL_REST, Selection
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)


class DecisionSelector:
    """Candidates that take no requests, or cannot answer this one, are left out first, then the algorithm ranks the others."""

    def __init__(
        self, candidates: Sequence[Candidate], algorithm: Algorithm, requirements: Requirements, strict: bool = False, least: int = 1,
        keeper: SessionKeeper | None = None,
    ):  # fmt: skip
        """`strict`: a fallback of the algorithm is a failure. `least`: with fewer candidates left there is no choice."""
        self._keeper = keeper
        self._candidates = candidates
        self._strict = strict
        self._least = least
        self._algorithm = algorithm
        self._requirements = requirements

    def deployments(self) -> frozenset[str]:
        return self._algorithm.deployments()

    async def select(self, context: RequestContext) -> Selection:
        """Raises RequestError only for a request that is too large for every candidate."""
        began = time.perf_counter()
        method = self._algorithm.type
        awake = [candidate for candidate in self._candidates if candidate.model not in context.generation.resting]
        if not awake:
            return Selection(None, method, ALL_REST, "unavailable")
        eligible = self._requirements.eligible(awake, context)
        if not eligible:
            return Selection(None, method, self._requirements.complaint, "unavailable")
        if len(eligible) < self._least:
            return Selection(None, method, f"{len(eligible)} of at least {self._least} candidates can answer the request", "unavailable")
        try:
            ranking = await self._algorithm.rank(eligible, context)
        except HeadwayError:
            raise
        except Exception as error:  # a defect of one algorithm costs its choice, not the request
            _log.error("selection %s failed: %s", method, describe_defect(error))
            ranking = without_choice(eligible, "algorithm_failed")
        if self._strict and ranking.fallback is not None:
            ranking = replace(ranking, failed=True)
        if self._keeper is not None:
            ranking = await self._keeper.kept(ranking, context)
        selection = _selection(ranking, method)
        self._count(context, selection, ranking, time.perf_counter() - began)
        return selection

    def _count(self, context: RequestContext, selection: Selection, ranking: Ranking, seconds: float) -> None:
        metrics, method = context.generation.services.metrics, selection.method
        metrics.observe("llm_model_selection_duration_seconds", seconds, method)
        if context.dry_run:
            return
        metrics.count("llm_model_selection", method, selection.model or "")
        if ranking.fallback is not None:
            metrics.count("llm_model_selection_fallback", method, ranking.fallback)
        score = selection.scores.get(selection.order[0]) if selection.order else None
        if score is not None:
            metrics.observe("llm_model_selection_score", score, method)
        if ranking.confidence is not None and selection.model is not None:
            metrics.observe("llm_model_selection_confidence", ranking.confidence, method)


def _selection(ranking: Ranking, method: str) -> Selection:
    if ranking.failed or not ranking.order:
        return Selection(None, method, ranking.reason, "failed", scores=ranking.scores)
    first = ranking.order[0]
    return Selection(
        first.model,
        method,
        ranking.reason,
        "fallback" if ranking.fallback is not None else ranking.status,
        order=tuple(dict.fromkeys(candidate.name for candidate in ranking.order)),
        scores=dict(ranking.scores),
        use_reasoning=first.ref.use_reasoning,
        reasoning_mode=first.ref.reasoning_mode,
        reasoning_effort=first.ref.reasoning_effort,
        lora=first.lora,
        sampled=ranking.sampled,
        sampling_seed=ranking.sampling_seed,
    )
