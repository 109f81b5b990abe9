"""What is counted of routed requests."""

from __future__ import annotations

from headway.router.metrics.registry import RouterMetrics
from headway.router.metrics.routing_counts import count_routing
from tests.router.routed import recipe, route

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
        count_routing(metrics, "default", routed.observations, routed.decision)
    assert metrics.value("llm_signal_extraction", "keyword") == 8
    assert metrics.value("llm_signal_extraction", "context") == 4
    assert metrics.value("llm_signal_match", "keyword", "code") == 2
    assert metrics.value("llm_signal_match", "keyword", "chat") == 1
    assert metrics.value("llm_signal_match", "context", "short") == 4
    assert metrics.value("llm_decision_evaluation", "default") == 8
    text = metrics.text().decode()
    assert 'llm_decision_confidence_count{decision="code",recipe="default"} 2.0' in text
    assert 'decision="chat"' not in text  # a mean over two conditions compares with nothing
