"""ExclusiveSignal: rules of which a model chooses at most one, by its likeliest label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking.label_names import plain, renamed
from headway.router.signals.asking.label_source import LabelSource
from headway.router.signals.asking.reasons import nothing_to_read, unknown
from headway.router.truth import Truth


@dataclass(frozen=True, slots=True)
class LabelRule:
    """`labels` are plain names (`label_names.plain`)."""

    name: str
    labels: frozenset[str]
    threshold: float


@dataclass(frozen=True, slots=True)
class ExclusiveSignal:
    """A rule matches when the likeliest label of the latest user turn is one of its own and reaches its threshold. `fallback` is the label that
    counts when the likeliest one reaches no threshold. `other_names` maps labels of models (plain) to those of rules."""

    kind: str
    source: LabelSource
    rules: Sequence[LabelRule]
    other_names: Mapping[str, str] = field(default_factory=dict)
    fallback: str | None = None

    def deployments(self) -> frozenset[str]:
        return frozenset((self.source.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        text, names = view.user_text, [rule.name for rule in self.rules]
        if not text.strip():
            return nothing_to_read(self.kind, names)
        (answer,) = await self.source.read(calls, [text])
        if isinstance(answer, Unanswered):
            return unknown(self.kind, names, self.source.asked, answer)
        return self._judged(answer)

    def _judged(self, answer: Answered[Mapping[str, float]]) -> list[Observation]:
        scores = renamed(answer.value, self.other_names)
        if not scores:
            return unknown(self.kind, (rule.name for rule in self.rules), self.source.asked, Unanswered("invalid_model_output"))
        best = max(scores, key=scores.__getitem__)
        chosen = best
        if self.fallback is not None and all(scores[best] < rule.threshold for rule in self.rules):
            chosen = plain(self.fallback)
        found = []
        for rule in self.rules:
            value = max((scores[label] for label in rule.labels if label in scores), default=0.0)
            fell_back = chosen != best and chosen in rule.labels
            matched = fell_back or (chosen in rule.labels and scores[best] >= rule.threshold)
            confidence = (scores[best] if not fell_back else value) if matched else None
            found.append(
                Observation(self.kind, rule.name, Truth.of(matched), confidence, value, matched_labels=(chosen,) if matched else (), evidence={"label": best})
            )
        return found
