"""What is counted of routed requests."""

from __future__ import annotations

from typing import cast

from headway.router.decisions.result import DecisionResult
from headway.router.deployments.calls import Stages
from headway.router.metrics.registry import RouterMetrics
from headway.router.metrics.routing_counts import count_routing
from headway.router.observation import Observation, Observations
from headway.router.truth import Truth
from tests.router.routed import recipe, route
from tests.router.scripted_calls import ScriptedCalls, ScriptedStages

RECIPE = recipe(
    {
        "signals": {
            "keywords": [{"name": name, "operator": "OR", "keywords": [name]} for name in ("code", "chat")],
            "context": [{"name": "short", "max_tokens": "1K"}],
        },
        "decisions": [
            {"name": "code", "priority": 1, "rules": {"type": "keyword", "name": "code"}},
            {"name": "chat", "rules": {"operator": "AND", "conditions": [{"type": "keyword", "name": "chat"}, {"type": "context", "name": "short"}]}},
        ],
    }
)


def test_rules_matches_and_confidences() -> None:
    metrics = RouterMetrics()
    for text in ("code", "code", "chat", "nothing"):
        routed = route(RECIPE, text)
        count_routing(metrics, "default", routed.observations, routed.scores, routed.decision)
    assert metrics.value("llm_signal_extraction", "keyword") == 8
    assert metrics.value("llm_signal_extraction", "context") == 4
    assert metrics.value("llm_signal_match", "keyword", "code") == 2
    assert metrics.value("llm_signal_match", "keyword", "chat") == 1
    assert metrics.value("llm_signal_match", "context", "short") == 4
    assert metrics.value("llm_decision_evaluation", "default") == 8
    text = metrics.text().decode()
    assert 'llm_decision_confidence_count{decision="code",recipe="default"} 2.0' in text
    assert 'decision="chat"' not in text  # a mean over two conditions compares with nothing


def test_the_time_of_each_type_of_signal_whether_it_is_read_or_asked() -> None:
    metrics = RouterMetrics()
    leaves = [{"type": "domain", "name": "law"}, {"type": "keyword", "name": "law"}]
    rules = {"domains": [{"name": "law"}], "keywords": [{"name": "law", "operator": "OR", "keywords": ["law"]}]}
    asking = recipe({"signals": rules, "decisions": [{"name": "d", "rules": {"operator": "OR", "conditions": leaves}}]})
    routed = route(asking, "law", stages=cast(Stages, ScriptedStages(ScriptedCalls())))
    count_routing(metrics, "default", routed.observations, routed.scores, routed.decision)
    assert [metrics.value("llm_signal_extraction_latency_seconds", kind) for kind in ("domain", "keyword")] == [1, 1]


def test_scores_reasons_and_personal_data() -> None:
    metrics = RouterMetrics()
    found = Observations([
        Observation("domain", "law", Truth.UNKNOWN, reason="domain_timeout"),
        Observation("pii", "strict", Truth.TRUE, 0.9, matched_labels=("EMAIL", "PHONE")),
        Observation("pii", "unread", Truth.TRUE, matched_labels=("unscanned",), reason="unscanned_input_limit"),
        Observation("pii", "lax", Truth.FALSE),
    ])  # fmt: skip
    count_routing(metrics, "default", found, {"difficulty": 0.35, "money": 7.0}, DecisionResult(None, None))
    assert metrics.value("llm_routing_reason_codes", "domain_timeout") == 1
    assert metrics.value("llm_routing_reason_codes", "unscanned_input_limit") == 1
    assert [metrics.value("llm_pii_violations", label) for label in ("EMAIL", "PHONE", "unscanned")] == [1, 1, 0]
    text = metrics.text().decode()
    assert 'llm_projection_score_bucket{le="0.3",projection="difficulty",recipe="default"} 0.0' in text
    assert 'llm_projection_score_bucket{le="0.4",projection="difficulty",recipe="default"} 1.0' in text
    assert 'llm_projection_score_sum{projection="money",recipe="default"} 7.0' in text
