"""Composers: complexity rules that count only where a tree of other conditions holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway.router.config.document.model_signals import ComplexityRule
from headway.router.decisions.evaluation import Evaluate, Leaves, compile_rules
from headway.router.observation import Observations
from headway.router.signals.asking.complexity import names_of
from headway.router.signals.kind import Recipe
from headway.router.truth import Truth


class Composers:
    """Applied once all signals are observed. Where the tree does not hold, no level of the rule does; its number stays."""

    def __init__(self, recipe: Recipe) -> None:
        rules: Sequence[ComplexityRule] = (recipe.routing.signals.complexity if recipe.routing.signals else None) or ()
        choices = frozenset(
            rule.name for rule in (recipe.routing.signals.systemone if recipe.routing.signals else None) or () if rule.question.type == "choice"
        )
        self._trees: list[tuple[ComplexityRule, Evaluate]] = [
            (rule, compile_rules(rule.composer, Leaves({}, choices))) for rule in rules if rule.composer is not None
        ]

    def apply(self, observations: Observations) -> None:
        for rule, evaluate in self._trees:
            truth = evaluate(observations).truth
            if truth is Truth.TRUE:
                continue
            found = [one for name in names_of(rule) if (one := observations.get("complexity", name)) is not None]
            observations.add(replace(one, truth=truth, confidence=None, matched_labels=()) for one in found if one.truth is Truth.TRUE)
