"""decision: a decision model is asked which of the models should answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.router.config.document.algorithms import DecisionSelection
from headway.router.deployments.calls import Unanswered
from headway.router.request.context import RequestContext
from headway.router.selection.candidates import Candidate
from headway.router.selection.ranking import Ranking, by_score, without_choice


@dataclass(frozen=True, slots=True)
class DecisionModel:
    """One choice between the candidates, asked after the decision matched; the probabilities are the scores. Without an answer, the first modelRef."""

    settings: DecisionSelection
    deployment: str
    type: str = "decision"

    async def rank(self, candidates: Sequence[Candidate], context: RequestContext) -> Ranking:
        if len(candidates) == 1:
            return Ranking(candidates, "the only model that can answer")
        question = {"type": "choice", "instructions": self.settings.instructions, "choices": [self._choice(each) for each in candidates]}
        timeout = self.settings.timeout_ms / 1000 if self.settings.timeout_ms else None
        deadline = context.deadline if timeout is None else context.deadline.sooner(timeout)
        calls = context.generation.deployments.open(deadline).join()
        try:
            answer = await calls.decide(self.deployment, question, _state(context), timeout=timeout)
        finally:
            calls.leave()
        if isinstance(answer, Unanswered):
            return without_choice(candidates, answer.reason)
        given: Mapping[str, float] = answer.value["probabilities"]
        scores = {each.name: float(given[each.name]) for each in candidates}
        return Ranking(by_score(candidates, scores), "chosen by a decision model", scores, max(scores.values()))

    def deployments(self) -> frozenset[str]:
        return frozenset({self.deployment})

    def _choice(self, candidate: Candidate) -> dict[str, str]:
        told = _told(self.settings.candidates or {}, candidate) or candidate.description
        return {"key": candidate.name, "description": told or candidate.name}


def _state(context: RequestContext) -> str:
    return context.view.user_text


def _told(descriptions: Mapping[str, str], candidate: Candidate) -> str | None:
    return descriptions.get(candidate.name) or descriptions.get(candidate.ref.model or "")
