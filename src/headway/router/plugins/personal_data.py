"""Who finds the places of personal data in a text: the model bound to `pii_classifier`, else the decision model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.config.document.modules import PIIModule
from headway.router.deployments.calls import Answered, FoundSpan, StageCalls, Unanswered
from headway.router.signals.asking import questions
from headway.router.signals.asking.answerer import DECISION_CONTRACTS, binding_of, decision_model
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import Recipe

_QUESTION = {**questions.PII, "type": "span", "instructions": "Mark all personal data in this text."}
Spans = Answered[Sequence[FoundSpan]] | Unanswered


@dataclass(frozen=True, slots=True)
class PersonalData:
    """`threshold`: from which score on a span counts, where a plugin names none. Without `marks` a decision model is asked a span question."""

    deployment: str
    marks: bool
    head: str | None
    threshold: float

    async def find(self, calls: StageCalls, texts: Sequence[str]) -> Sequence[Spans]:
        """One answer for each text; ranges are half-open, in code points of the text."""
        if self.marks:
            return await calls.find_spans(self.deployment, texts, head=self.head)
        return await asyncio.gather(*(self._asked(calls, text) for text in texts))

    async def _asked(self, calls: StageCalls, text: str) -> Spans:
        answer = await calls.decide(self.deployment, _QUESTION, text, full=True)
        if isinstance(answer, Unanswered):
            return answer
        found = [FoundSpan(span["label"], span["start"], span["end"], float(span["probability"])) for span in answer.value["spans"]]
        return Answered(found, answer.read_all)


def personal_data_source(recipe: Recipe) -> PersonalData:
    binding = binding_of(recipe, "pii_classifier")
    classifier = recipe.modules.classifier
    module = (classifier.pii if classifier else None) or PIIModule()
    deployment = binding.deployment if binding else decision_model(recipe)
    marks = binding is not None and binding.contract not in DECISION_CONTRACTS
    threshold = module.threshold if module.threshold is not None else default_threshold(recipe, deployment, "pii", 0.0)
    return PersonalData(deployment, marks, binding.head if binding else None, threshold)
