"""Preferences by likeness: to the description and the examples of each rule."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.model_signals import PreferenceRule, PrototypeScoring
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.source import required_embedding
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import reasons
from headway.router.signals.asking.prototypes import similarity
from headway.router.signals.kind import Recipe
from headway.router.truth import Truth

_THRESHOLD = 0.35  # of a rule without one: a short message and a description of it are seldom nearer


class PreferenceExamples:
    """The nearest rule matches if it reaches its threshold and is ahead of the second by the margin of prototype scoring, if that is on."""

    def __init__(self, rules: Sequence[PreferenceRule], embedder: Embedder, scoring: PrototypeScoring | None) -> None:
        self._rules = rules
        self._embedder = embedder
        self._scoring = scoring

    @classmethod
    def compiled(cls, rules: Sequence[PreferenceRule], recipe: Recipe, scoring: PrototypeScoring | None) -> PreferenceExamples:
        """Raises ConfigError when nothing makes vectors."""
        texts = [text for rule in rules for text in _texts(rule)]
        return cls(rules, Embedder(required_embedding(recipe, "a preference rule"), recipe.vectors, texts), scoring)

    def deployments(self) -> frozenset[str]:
        return frozenset((self._embedder.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        names = [rule.name for rule in self._rules]
        if not view.user_text.strip():
            return reasons.nothing_to_read("preference", names)
        vectors = await self._embedder.embed(calls, [view.user_text])
        if isinstance(vectors, Unanswered):
            return reasons.unknown("preference", names, reasons.VECTORS, vectors)
        scores, at = [], 0
        for rule in self._rules:
            count = len(_texts(rule))
            scores.append(similarity(vectors.queries[0], vectors.candidates[at : at + count], self._scoring))
            at += count
        order = sorted(range(len(scores)), key=lambda n: -scores[n])
        margin = self._scoring.margin_threshold if self._scoring and self._scoring.enabled else 0.0
        ahead = len(order) < 2 or scores[order[0]] - scores[order[1]] >= margin
        return [self._judged(n, scores[n], n == order[0] and ahead) for n in range(len(scores))]

    def _judged(self, number: int, score: float, first: bool) -> Observation:
        rule = self._rules[number]
        matched = first and score >= (_THRESHOLD if rule.threshold is None else rule.threshold)
        return Observation("preference", rule.name, Truth.of(matched), max(0.0, score) if matched else None, score)


def _texts(rule: PreferenceRule) -> list[str]:
    return [rule.description, *rule.examples]
