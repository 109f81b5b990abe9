"""complexity: how hard a request is, by likeness to hard and easy examples, or by the judgement of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.router.config.document.model_signals import ComplexityRule, PrototypeScoring
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.memo import Input
from headway.router.embedding.source import required_embedding
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions, reasons
from headway.router.signals.asking.answerer import label_source
from headway.router.signals.asking.images import image_inputs
from headway.router.signals.asking.label_names import by_plain_name
from headway.router.signals.asking.label_source import LabelSource
from headway.router.signals.asking.prototypes import similarity
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

LEVELS: Final = ("easy", "medium", "hard")
_HARDNESS: Final[Mapping[str, float]] = {"easy": 0.0, "medium": 0.5, "hard": 1.0}
_HARD_ABOVE, _EASY_BELOW = 2 / 3, 1 / 3  # where a rule gives one bound only


def names_of(rule: ComplexityRule) -> tuple[str, ...]:
    """Conditions name a level of the rule."""
    return tuple(f"{rule.name}:{level}" for level in LEVELS)


def _judged(rule: ComplexityRule, level: str, value: float, confidence: float | None) -> list[Observation]:
    """One observation for each level; all carry the rule's number."""
    return [
        Observation("complexity", name, Truth.of(here == level), confidence if here == level else None, value, matched_labels=(level,) if here == level else ())
        for here, name in zip(LEVELS, names_of(rule), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class ComplexityByLikeness:
    """One rule: the likeness to hard candidates less that to easy ones is above `threshold` (hard), below its negative (easy), or between."""

    rule: ComplexityRule
    hard: int
    embedder: Embedder
    scoring: PrototypeScoring | None

    def deployments(self) -> frozenset[str]:
        return frozenset((self.embedder.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        if not view.user_text.strip():
            return reasons.nothing_to_read("complexity", names_of(self.rule))
        vectors = await self.embedder.embed(calls, [view.user_text])
        if isinstance(vectors, Unanswered):
            return reasons.unknown("complexity", names_of(self.rule), reasons.VECTORS, vectors)
        query = vectors.queries[0]
        value = similarity(query, vectors.candidates[: self.hard], self.scoring) - similarity(query, vectors.candidates[self.hard :], self.scoring)
        level = "hard" if value > self.rule.threshold else "easy" if value < -self.rule.threshold else "medium"
        return _judged(self.rule, level, value, min(1.0, abs(value)))


@dataclass(frozen=True, slots=True)
class ComplexityByModel:
    """All rules without candidates. A rule without bounds takes the likeliest level; bounds are compared with the expected one, 0 to 1."""

    rules: Sequence[ComplexityRule]
    source: LabelSource

    def deployments(self) -> frozenset[str]:
        return frozenset((self.source.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        names = [name for rule in self.rules for name in names_of(rule)]
        if not view.user_text.strip():
            return reasons.nothing_to_read("complexity", names)
        (answer,) = await self.source.read(calls, [view.user_text])
        scores = answer if isinstance(answer, Unanswered) else _levels(answer.value)
        if isinstance(scores, Unanswered):
            return reasons.unknown("complexity", names, self.source.asked, scores)
        expected = sum(_HARDNESS[level] * score for level, score in scores.items()) / (sum(scores.values()) or 1.0)
        found: list[Observation] = []
        for rule in self.rules:
            level = _by_bounds(rule, expected) or max(scores, key=scores.__getitem__)
            found += _judged(rule, level, expected, scores[level])
        return found


def _levels(scores: Mapping[str, float]) -> dict[str, float] | Unanswered:
    named = by_plain_name(scores)
    return {level: named.get(level, 0.0) for level in LEVELS} if {"easy", "hard"} <= named.keys() else Unanswered("invalid_model_output")


def _by_bounds(rule: ComplexityRule, expected: float) -> str | None:
    """None for a rule without bounds. `hard_below` and `easy_above` are bounds on ease, which is 1 less hardness."""
    if rule.hard_below is not None or rule.easy_above is not None:
        hard_above = 1 - rule.hard_below if rule.hard_below is not None else _HARD_ABOVE
        easy_below = 1 - rule.easy_above if rule.easy_above is not None else _EASY_BELOW
    elif rule.hard_above is not None or rule.easy_below is not None:
        hard_above = rule.hard_above if rule.hard_above is not None else _HARD_ABOVE
        easy_below = rule.easy_below if rule.easy_below is not None else _EASY_BELOW
    else:
        return None
    return "hard" if expected > hard_above else "easy" if expected < easy_below else "medium"


def compile_complexity(rules: Sequence[ComplexityRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """Raises ConfigError for candidates when nothing makes vectors."""
    compared = [rule for rule in rules if rule.hard is not None]
    judged = [rule for rule in rules if rule.hard is None]
    found: list[ModelSignal] = [_compared(rule, recipe) for rule in compared]
    if judged:
        found.append(ComplexityByModel(judged, label_source(recipe, "complexity", questions.COMPLEXITY)))
    return found


def _compared(rule: ComplexityRule, recipe: Recipe) -> ComplexityByLikeness:
    module = recipe.modules.complexity
    assert rule.hard is not None
    assert rule.easy is not None
    hard: list[Input] = [*rule.hard.candidates, *image_inputs(rule.hard.image_candidates, recipe.document.place)]
    easy: list[Input] = [*rule.easy.candidates, *image_inputs(rule.easy.image_candidates, recipe.document.place)]
    deployment = required_embedding(recipe, f'complexity rule "{rule.name}"')
    scoring = rule.prototype_scoring or (module.prototype_scoring if module else None)
    return ComplexityByLikeness(rule, len(hard), Embedder(deployment, recipe.vectors, [*hard, *easy]), scoring)


COMPLEXITY = SignalKind("complexity", "complexity", "complexity", compile_complexity, names=names_of, scale="similarity")
