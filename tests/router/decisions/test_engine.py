"""The engine as a whole: gates and evidence, catch-alls, what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.decisions.engine import compile_decisions
from headway.router.decisions.result import DecisionResult
from headway.router.observation import Observation, Observations
from headway.router.truth import Truth
from tests.router.routed import recipe

SIGNALS = {
    "domains": [{"name": "law"}, {"name": "computer science"}],
    "keywords": [{"name": name, "operator": "OR", "keywords": [name]} for name in ("code", "gate", "statute", "marker")],
    "embeddings": [{"name": "legal", "threshold": 0.5, "candidates": ["a contract"]}],
}


def yes(kind: str, name: str, confidence: float | None = None) -> Observation:
    return Observation(kind, name, Truth.TRUE, confidence)


def no(kind: str, name: str) -> Observation:
    return Observation(kind, name, Truth.FALSE)


def unknown(kind: str, name: str) -> Observation:
    return Observation(kind, name, Truth.UNKNOWN, reason=f"{kind}_timeout")


def decide(decisions: list[dict[str, Any]], *found: Observation, strategy: str = "priority") -> DecisionResult:
    return compile_decisions(recipe({"signals": SIGNALS, "decisions": decisions, "strategy": strategy})).decide(Observations(found))


def both(operator: str, *conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"operator": operator, "conditions": list(conditions), **more}


LAW, CODE, GATE, STATUTE, MARKER = ({"type": "domain", "name": "law"}, *({"type": "keyword", "name": name} for name in ("code", "gate", "statute", "marker")))


@pytest.mark.parametrize("strategy", ["priority", "confidence"])
@pytest.mark.parametrize("statute", [True, False])
@pytest.mark.parametrize("alternative", [True, False])
def test_what_has_no_score_never_outranks_what_has_one(strategy: str, statute: bool, alternative: bool) -> None:
    """A route with a classifier's evidence against one with a keyword and a guard; with and without a supporting keyword."""
    legal = both("OR", LAW, STATUTE) if alternative else both("AND", LAW, *([STATUTE] if statute else []))
    code = both("AND", CODE, both("NOT", GATE))
    found = [yes("domain", "law", 0.7), yes("keyword", "code", 1.0), yes("keyword", "statute", 0.9) if statute else no("keyword", "statute")]
    result = decide(
        [{"name": "code", "priority": 250, "rules": code}, {"name": "legal", "priority": 260, "rules": legal}], *found, strategy=strategy
    )
    assert result.order == ("legal", "code")
    assert result.ranked_by == "priority"
    legal_root = next(each for each in result.evaluated if each.name == "legal")
    assert (legal_root.score, legal_root.scale) == (0.7, "probability")
    if alternative:
        assert legal_root.confidence == 0.7  # the keyword neither raises nor hides what the classifier measured


def test_confidence_ranks_what_is_comparable() -> None:
    decisions = [{"name": "law", "priority": 2, "rules": LAW}, {"name": "science", "priority": 1, "rules": {"type": "domain", "name": "computer science"}}]
    found = [yes("domain", "law", 0.86), yes("domain", "computer science", 0.95)]
    assert decide(decisions, *found, strategy="confidence").order == ("science", "law")
    assert decide(decisions, *found, strategy="confidence").ranked_by == "confidence"
    assert decide(decisions, *found).order == ("law", "science")


def test_two_scales_in_one_decision_are_no_score() -> None:
    result = decide([{"name": "d", "rules": both("AND", LAW, {"type": "embedding", "name": "legal"})}], yes("domain", "law", 0.9), yes("embedding", "legal", 0.8))
    assert (result.evaluated[0].score, result.evaluated[0].confidence) == (None, pytest.approx(0.85))


def test_a_catch_all_matches_with_confidence_0_and_loses_to_everything() -> None:
    for rules in ({}, {"rules": {"operator": "AND"}}, {"rules": {"operator": "AND", "conditions": []}}):
        decisions = [{"name": "all", "priority": 900, **rules}, {"name": "code", "rules": CODE}]
        assert decide(decisions, yes("keyword", "code", 0.6)).order == ("code", "all")
        alone = decide(decisions, no("keyword", "code"))
        assert (alone.chosen, alone.confidence, alone.matched_rules, alone.evaluated[0].catch_all) == ("all", 0.0, (), True)


def test_nothing_matches() -> None:
    result = decide([{"name": "code", "rules": CODE}], no("keyword", "code"))
    assert (result.chosen, result.confidence, result.order, result.failed) == (None, None, (), None)
    assert [each.name for each in result.evaluated] == ["code"]
    assert decide([]).chosen is None


def test_confidence_is_reported_only_where_one_leaf_gave_it() -> None:
    def confidence(rules: dict[str, Any], *found: Observation) -> float | None:
        return decide([{"name": "d", "rules": rules}], *found).confidence

    law, code = yes("domain", "law", 0.9), yes("keyword", "code", 0.625)
    assert confidence(CODE, code) == 0.625
    assert confidence(both("AND", CODE), code) == 0.625
    assert confidence(both("OR", LAW, CODE), law, code) == 0.9
    assert confidence(both("AND", LAW, CODE), law, code) is None
    assert confidence(both("AND", LAW, both("NOT", GATE)), law) is None


def test_matched_rules_name_what_supports_the_winner() -> None:
    rules = both("AND", both("OR", CODE, STATUTE, MARKER), both("NOT", GATE), LAW)
    result = decide([{"name": "d", "rules": rules}], yes("keyword", "code"), yes("keyword", "marker"), no("keyword", "statute"), yes("domain", "law"))
    assert result.matched_rules == ("keyword:code", "keyword:marker", "domain:law")


def test_a_branch_that_really_holds_speaks_for_an_or() -> None:
    """NOT of a signal that failed holds, but a policy said so."""
    rules = both("OR", both("NOT", GATE), CODE)
    result = decide([{"name": "d", "rules": rules}], unknown("keyword", "gate"), yes("keyword", "code", 0.6))
    assert (result.confidence, result.matched_rules) == (0.6, ("keyword:code",))
    assert result.evaluated[0].root.assumed is False


def test_a_guard_that_could_not_answer_matches_but_is_no_evidence() -> None:
    guard = {"name": "guard", "threshold": 0.5}
    built = recipe({"signals": {**SIGNALS, "jailbreak": [guard]}, "decisions": [{"name": "block", "rules": {"type": "jailbreak", "name": "guard"}}]})
    result = compile_decisions(built).decide(Observations([Observation("jailbreak", "guard", Truth.TRUE, reason="jailbreak_timeout")]))
    assert (result.chosen, result.evaluated[0].score, result.evaluated[0].root.assumed) == ("block", None, True)


def test_matched_rules_leave_out_what_only_a_policy_made_hold() -> None:
    guard = {"type": "jailbreak", "name": "guard"}
    signals = {**SIGNALS, "jailbreak": [{"name": "guard", "threshold": 0.5}]}
    built = recipe({"signals": signals, "decisions": [{"name": "d", "rules": both("OR", guard, CODE)}]})
    failed = Observation("jailbreak", "guard", Truth.TRUE, reason="jailbreak_unavailable")
    assert compile_decisions(built).decide(Observations([failed, yes("keyword", "code", 0.6)])).matched_rules == ("keyword:code",)
    assert compile_decisions(built).decide(Observations([failed, no("keyword", "code")])).matched_rules == ("jailbreak:guard",)


def test_fail_request_goes_before_every_match() -> None:
    guarded = {"name": "guarded", "priority": 1, "rules": both("AND", GATE, on_unknown="fail_request")}
    good = {"name": "good", "priority": 100, "rules": CODE}
    for decisions in ([guarded, good], [good, guarded]):
        result = decide(decisions, unknown("keyword", "gate"), yes("keyword", "code"))
        assert (result.chosen, result.failed, dict(result.policies)) == (None, "guarded", {"guarded": "fail_request"})
        assert {each.name: each.matched for each in result.evaluated} == {"guarded": False, "good": True}


def test_all_policies_that_were_applied_are_told() -> None:
    decisions = [{"name": policy, "rules": both("AND", GATE, on_unknown=policy)} for policy in ("match", "no_match")]
    result = decide(decisions, unknown("keyword", "gate"))
    assert dict(result.policies) == {"match": "match", "no_match": "no_match"}
    assert result.chosen == "match"
    assert decide(decisions, no("keyword", "gate")).policies == {}


def test_the_trace_has_evidence_and_reasons() -> None:
    shown = Observation("keyword", "code", Truth.TRUE, 1.0, evidence={"keywords": [{"keyword": "C++", "start": 8, "end": 11}]})
    root = decide([{"name": "d", "rules": both("AND", CODE, GATE)}], shown, unknown("keyword", "gate")).evaluated[0].root
    code, gate = root.children
    assert code.evidence == shown.evidence
    assert (gate.truth, gate.reason, gate.assumed) == (Truth.FALSE, "keyword_timeout", True)
    assert (root.kind, root.truth, root.confidence) == ("AND", Truth.FALSE, None)


def test_the_strategy_is_the_recipes_or_else_the_routers() -> None:
    decisions = [{"name": "law", "priority": 2, "rules": LAW}, {"name": "science", "priority": 1, "rules": {"type": "domain", "name": "computer science"}}]
    found = Observations([yes("domain", "law", 0.86), yes("domain", "computer science", 0.95)])

    def winner(own: str | None, router: str | None) -> str | None:
        told = {"global": {"router": {"strategy": router}}} if router else {}
        built = recipe({"signals": SIGNALS, "decisions": decisions, **({"strategy": own} if own else {})}, **told)
        return compile_decisions(built).decide(found).chosen

    assert winner(None, None) == "law"
    assert winner(None, "confidence") == "science"
    assert winner("priority", "confidence") == "law"
    assert winner("confidence", None) == "science"
