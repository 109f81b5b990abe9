"""What is counted of one routed request: its signals and its decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headway.router.decisions.result import DecisionResult
from headway.router.metrics.registry import RouterMetrics
from headway.router.observation import Observations
from headway.router.truth import Truth


def count_routing(metrics: RouterMetrics, recipe: str, observations: Observations, scores: Mapping[str, float], decision: DecisionResult) -> None:
    """Names are those of the configuration, reasons and types of personal data come from fixed lists or models' cards."""
    for kind, rules in Counter([each.kind for each in observations]).items():
        metrics.count("llm_signal_extraction", kind, by=rules)
    for kind, seconds in observations.seconds:
        metrics.observe("llm_signal_extraction_latency_seconds", seconds, kind)
    for each in observations:
        if each.truth is Truth.TRUE:
            metrics.count("llm_signal_match", each.kind, each.name)
        if each.reason is not None:
            metrics.count("llm_routing_reason_codes", each.reason)
        if each.kind == "pii" and each.truth is Truth.TRUE and each.reason is None:
            for label in each.matched_labels:
                metrics.count("llm_pii_violations", label)
    for name, score in scores.items():
        metrics.observe("llm_projection_score", score, recipe, name)
    metrics.count("llm_decision_evaluation", recipe, by=len(decision.evaluated))
    if decision.chosen is not None and decision.confidence is not None:
        metrics.observe("llm_decision_confidence", decision.confidence, recipe, decision.chosen)
