"""How much of an answer its sources bear out: the model bound to `hallucination_detector`, else the decision model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.router.config.document.modules import HallucinationDetector
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.signals.asking.answerer import DECISION_CONTRACTS, binding_of, decision_model
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import Recipe

_QUESTION: Final[Mapping[str, Any]] = {
    "type": "noul",
    "instructions": "Does the answer claim something that the context does not bear out?",
}
_BORNE_OUT: Final = frozenset({"supported", "grounded", "o", "0", "label_0", "consistent"})


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What is not borne out. `spans` are (start, end, score) in code points of the answer; empty where a model only says that there is something.
    `score` is the highest."""

    score: float
    spans: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Grounding:
    deployment: str
    marks: bool
    head: str | None
    threshold: float
    shortest: int
    least: float

    async def check(self, calls: StageCalls, context: str, question: str, answer: str) -> Unsupported | Unanswered | None:
        """None: nothing was found."""
        given = {"context": context, "question": question, "answer": answer}
        if not self.marks:
            judged = await calls.decide(self.deployment, _QUESTION, given, full=True)
            if isinstance(judged, Unanswered):
                return judged
            doubt = float(judged.value["noul"])
            return Unsupported(doubt) if doubt >= self.threshold else None
        (found,) = await calls.find_spans(self.deployment, [given], head=self.head)
        if isinstance(found, Unanswered):
            return found
        spans = [
            (span.start, span.end, span.score)
            for span in found.value
            if span.label.casefold() not in _BORNE_OUT and span.end - span.start >= self.shortest and span.score >= max(self.threshold, self.least)
        ]
        return Unsupported(max(score for *_, score in spans), tuple(spans)) if spans else None


def grounding_of(recipe: Recipe) -> Grounding:
    mitigation = recipe.modules.hallucination_mitigation
    detector = (mitigation.detector if mitigation else None) or HallucinationDetector()
    binding = binding_of(recipe, "hallucination_detector")
    deployment = binding.deployment if binding else decision_model(recipe)
    return Grounding(
        deployment=deployment,
        marks=binding is not None and binding.contract not in DECISION_CONTRACTS,
        head=binding.head if binding else None,
        threshold=detector.threshold if detector.threshold is not None else default_threshold(recipe, deployment, "hallucination"),
        shortest=detector.min_span_length or 1,
        least=detector.min_span_confidence or 0.0,
    )


def sources_of(messages: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> str:
    """What an answer may rest on: results of tools, which is also how rag hands documents over."""
    return "\n\n".join(text for message, text in zip(messages, texts, strict=True) if message.get("role") in ("tool", "function") and text)
