"""What is counted of one routed request: its signals and its decision."""

from __future__ import annotations

from collections import Counter

from headway.router.decisions.result import DecisionResult
from headway.router.metrics.registry import RouterMetrics
from headway.router.observation import Observations
from headway.router.truth import Truth


def count_routing(metrics: RouterMetrics, recipe: str, observations: Observations, decision: DecisionResult) -> None:
    """Names are those of the configuration."""
    for kind, rules in Counter([each.kind for each in observations]).items():
        metrics.count("llm_signal_extraction", kind, by=rules)
    for each in observations:
        if each.truth is Truth.TRUE:
            metrics.count("llm_signal_match", each.kind, each.name)
    metrics.count("llm_decision_evaluation", recipe, by=len(decision.evaluated))
    if decision.chosen is not None and decision.confidence is not None:
        metrics.observe("llm_decision_confidence", decision.confidence, recipe, decision.chosen)
