"""The event signal."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.truth import Truth
from tests.router.routed import route, signals_of

RULE: dict[str, Any] = {
    "name": "payment",
    "event_types": ["payment_failed", "transaction declined"],
    "severities": ["critical", "High"],
    "action_codes": ["TXN_DECLINE"],
    "temporal": True,
}


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ('{"type": "payment_failed"}', 1),
        ("PAYMENT_FAILED, severity: CRITICAL", 2),
        ("txn_decline at once, critical, asap; Transaction declined", 4),
        ("TXN_DECLINE_REVERSED", 0),
        ("highly critically nowhere", 0),
        ("the critical-window closes", 2),
        ("critical.window", 2),
        ("time-sensitive", 1),
        ("", 0),
    ],
)
def test_criteria(text: str, met: int) -> None:
    found = route(signals_of("events", "event", [RULE]), text)["event:payment"]
    assert found.truth is Truth.of(met > 0)
    assert found.confidence == (0.5 + 0.5 * met / 4 if met else None)
    assert len(found.evidence.get("criteria", ())) == met


def test_one_criterion_is_everything_for_a_rule_that_has_one() -> None:
    rules = [{"name": "sev", "severities": ["low"]}, {"name": "codes", "action_codes": ["AUTH_FAIL"]}]
    found = route(signals_of("events", "event", rules), "severity low")
    assert (found["event:sev"].confidence, found["event:codes"].truth) == (1.0, Truth.FALSE)
