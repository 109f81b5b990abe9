"""fact_check: does an answer depend on facts that should be checked?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.router.config.document.model_signals import FactCheckRule
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions
from headway.router.signals.asking.answerer import label_source
from headway.router.signals.asking.label_names import renamed
from headway.router.signals.asking.label_source import LabelSource
from headway.router.signals.asking.reasons import nothing_to_read, unknown
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_NEEDS: Final = "needs_fact_check"
_NAMES: Final[Mapping[str, str]] = {"true": _NEEDS, "fact_check_needed": _NEEDS, "fact_check": _NEEDS}


@dataclass(frozen=True, slots=True)
class FactCheckSignal:
    """`needs_fact_check` matches from `threshold` up, `no_fact_check_needed` below it."""

    names: Sequence[str]
    source: LabelSource
    threshold: float

    def deployments(self) -> frozenset[str]:
        return frozenset((self.source.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        if not view.user_text.strip():
            return nothing_to_read("fact_check", self.names)
        (answer,) = await self.source.read(calls, [view.user_text])
        needs = None if isinstance(answer, Unanswered) else renamed(answer.value, _NAMES).get(_NEEDS)
        if needs is None:
            failure = answer if isinstance(answer, Unanswered) else Unanswered("invalid_model_output")
            return unknown("fact_check", self.names, self.source.asked, failure)
        return [self._judged(name, needs) for name in self.names]

    def _judged(self, name: str, needs: float) -> Observation:
        matched = (needs >= self.threshold) == (name == _NEEDS)
        value = needs if name == _NEEDS else 1.0 - needs
        return Observation("fact_check", name, Truth.of(matched), value if matched else None, value)


def compile_fact_checks(rules: Sequence[FactCheckRule], recipe: Recipe) -> Sequence[ModelSignal]:
    mitigation = recipe.modules.hallucination_mitigation
    if mitigation is not None and not mitigation.enabled:
        return ()
    stated = mitigation.fact_check.threshold if mitigation and mitigation.fact_check else None
    source = label_source(recipe, "fact_check_classifier", questions.FACT_CHECK)
    threshold = stated if stated is not None else default_threshold(recipe, source.deployment, "fact_check")
    return (FactCheckSignal([rule.name for rule in rules], source, threshold),)


FACT_CHECK = SignalKind("fact_check", "fact_check", "fact_check", compile_fact_checks, scale="probability")
