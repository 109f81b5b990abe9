"""Complexity rules that count only where other conditions hold."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.deployments.calls import Unanswered
from headway.router.truth import Truth
from tests.router.routed import recipe, route
from tests.router.scripted_calls import ScriptedCalls, ScriptedStages

COMPOSER = {"operator": "AND", "conditions": [{"type": "keyword", "name": "code"}, {"type": "domain", "name": "law"}]}


def routing(**composer: Any) -> dict[str, Any]:
    signals = {"keywords": [{"name": "code", "operator": "OR", "keywords": ["python"]}], "domains": [{"name": "law"}],
               "complexity": [{"name": "c", "composer": {**COMPOSER, **composer}}]}  # fmt: skip
    leaf = {"type": "complexity", "name": "c:hard"}
    return {"signals": signals, "decisions": [{"name": "d", "rules": {"operator": "OR", "conditions": [leaf]}}]}


def answers(law: float) -> ScriptedCalls:
    def decide(question: Any, state: Any) -> Any:
        if question["choices"][0]["key"] == "easy":
            return {"type": "choice", "choice": "hard", "probabilities": {"easy": 0.1, "medium": 0.1, "hard": 0.8}}
        return Unanswered("timeout") if law < 0 else {"type": "choice", "choice": "law", "probabilities": {"law": law, "other": 1 - law}}

    return ScriptedCalls(decisions=decide)


@pytest.mark.parametrize(("text", "law", "truth"), [
    ("python", 0.9, Truth.TRUE), ("java", 0.9, Truth.FALSE), ("python", 0.1, Truth.FALSE), ("python", -1, Truth.FALSE),
])  # fmt: skip
def test_a_rule_counts_only_where_its_composer_holds(text: str, law: float, truth: Truth) -> None:
    found = route(recipe(routing()), text, stages=ScriptedStages(answers(law)))
    assert found["complexity:c:hard"].truth is truth
    assert found["complexity:c:hard"].value == pytest.approx(0.85)  # the number stays
    assert (found.decision.chosen == "d") is (truth is Truth.TRUE)


def test_a_composer_that_is_unknown_leaves_the_rule_unknown() -> None:
    found = route(recipe(routing(on_unknown="no_match")), "python", stages=ScriptedStages(answers(-1)))
    assert found["complexity:c:hard"].truth is Truth.UNKNOWN
    assert found["complexity:c:easy"].truth is Truth.FALSE
