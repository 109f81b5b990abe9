"""Rule trees over three values, all policies: exhaustive, against an evaluator that tries every completion of what is unknown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.document.decisions import Decision
from headway.router.config.document.rule_tree import RuleNode
from headway.router.decisions.engine import SCALES, RecipeDecisions
from headway.router.decisions.evaluation import Leaves, compile_rules
from headway.router.observation import Observation, Observations
from headway.router.truth import Truth

VALUES = {Truth.FALSE: (False,), Truth.UNKNOWN: (False, True), Truth.TRUE: (True,)}


def leaf(name: str, type: str = "keyword", **more: Any) -> dict[str, Any]:
    return {"type": type, "name": name, **more}


def trees(names: list[str]) -> Iterator[dict[str, Any]]:
    """Every tree of AND, OR, NOT over `names`, each once and in this order, two levels deep, with every NOT."""
    parts = [[leaf(name), {"operator": "NOT", "conditions": [leaf(name)]}] for name in names]
    for outer, inner in itertools.product(("AND", "OR"), repeat=2):
        for chosen in itertools.product(*parts):
            yield {"operator": outer, "conditions": list(chosen)}
            for cut in range(1, len(chosen)):
                inside = {"operator": inner, "conditions": list(chosen[cut:])}
                yield {"operator": outer, "conditions": [*chosen[:cut], inside]}
                yield {"operator": outer, "conditions": [*chosen[:cut], {"operator": "NOT", "conditions": [inside]}]}


def two_valued(node: Mapping[str, Any], world: Mapping[str, bool]) -> bool:
    if "type" in node:
        return world[node["name"]]
    parts = [two_valued(child, world) for child in node["conditions"]]
    return {"AND": all, "OR": any, "NOT": lambda found: not found[0]}[node["operator"]](parts)


def oracle(node: Mapping[str, Any], truths: Mapping[str, Truth]) -> Truth:
    """Each leaf stands there once, so that Kleene's value is what all completions agree on."""
    outcomes = {two_valued(node, dict(zip(truths, world, strict=True))) for world in itertools.product(*(VALUES[truth] for truth in truths.values()))}
    return Truth.UNKNOWN if len(outcomes) == 2 else Truth.of(outcomes.pop())


def observed(truths: Mapping[str, Truth]) -> Observations:
    return Observations(Observation("keyword", name, truth, reason="timeout" if truth is Truth.UNKNOWN else None) for name, truth in truths.items())


def test_every_tree_every_value_every_policy() -> None:
    names = ["a", "b", "c"]
    count = 0
    for tree in trees(names):
        strict = compile_rules(RuleNode.model_validate(tree), Leaves(SCALES))
        engines = {
            policy: RecipeDecisions([Decision.model_validate({"name": "d", "rules": {**tree, "on_unknown": policy}})], "priority", Leaves(SCALES))
            for policy in ("no_match", "match", "fail_request")
        }
        for values in itertools.product(Truth, repeat=len(names)):
            truths = dict(zip(names, values, strict=True))
            seen, count = observed(truths), count + 1
            # Without a policy there is no UNKNOWN: a leaf that failed does not match.
            failed = {name: Truth.FALSE if truth is Truth.UNKNOWN else truth for name, truth in truths.items()}
            assert strict(seen).truth is oracle(tree, failed), (tree, truths)
            wanted = oracle(tree, truths)
            for policy, engine in engines.items():
                result = engine.decide(seen)
                only = result.evaluated[0]
                assert only.root.truth is wanted, (tree, truths, policy)
                if wanted is not Truth.UNKNOWN:
                    assert only.matched is (wanted is Truth.TRUE)
                    assert (only.policy, dict(result.policies), result.failed) == (None, {}, None)
                else:
                    assert only.matched is (policy == "match")
                    assert dict(result.policies) == {"d": policy}
                    assert result.failed == ("d" if policy == "fail_request" else None)
                    if policy == "match":
                        assert (result.chosen, result.matched_rules, only.confidence, only.score) == ("d", ("on_unknown:match",), 1.0, None)
    assert count > 1000


@pytest.mark.parametrize("on_error", [None, "match", "no_match"])
@pytest.mark.parametrize("truth", list(Truth))
def test_a_condition_says_itself_what_a_failed_signal_counts_as(on_error: str | None, truth: Truth) -> None:
    told = leaf("risk", "classifier", label="RISKY", predicate={"gte": 0.5}) | ({"on_error": on_error} if on_error else {})
    labels = {"RISKY": 0.7} if truth is Truth.TRUE else {"RISKY": 0.2}
    seen = Observation("classifier", "risk", truth, labels=labels, reason="classifier_timeout" if truth is Truth.UNKNOWN else None)
    node = compile_rules(RuleNode.model_validate(told), Leaves(SCALES))(Observations([seen]))
    wanted = Truth.of(on_error == "match") if truth is Truth.UNKNOWN else truth
    assert node.truth is wanted
    assert node.assumed is (truth is Truth.UNKNOWN)
    assert node.score is None


@pytest.mark.parametrize("kleene", [False, True])
@pytest.mark.parametrize("own", [None, "match", "no_match", "unknown"])
@pytest.mark.parametrize("rule", list(Truth))
def test_a_condition_says_itself_what_unread_content_counts_as(rule: Truth, own: str | None, kleene: bool) -> None:
    told = leaf("secrets", "systemone", label="password") | ({"on_unscanned": own} if own else {}) | ({"on_unknown": "match"} if kleene else {})
    labels = ("password", "unscanned") if rule is Truth.TRUE else ()
    seen = Observation("systemone", "secrets", rule, matched_labels=labels, reason="unscanned_scan_budget")
    node = compile_rules(RuleNode.model_validate(told), Leaves(SCALES))(Observations([seen]))
    meant = rule if own is None else {"match": Truth.TRUE, "no_match": Truth.FALSE, "unknown": Truth.UNKNOWN}[own]
    assert node.truth is (Truth.FALSE if meant is Truth.UNKNOWN and not kleene else meant)
    assert (node.assumed, node.reason) == (True, "unscanned_scan_budget")
    answered = Observation("systemone", "secrets", Truth.TRUE, labels={"password": 0.9}, matched_labels=("password",))
    failed = Observation("systemone", "secrets", Truth.UNKNOWN, reason="question_timeout")
    evaluate = compile_rules(RuleNode.model_validate(told), Leaves(SCALES))
    assert evaluate(Observations([answered])).truth is Truth.TRUE
    assert evaluate(Observations([failed])).truth is (Truth.UNKNOWN if kleene else Truth.FALSE)


def test_what_nobody_observed_does_not_match() -> None:
    assert compile_rules(RuleNode.model_validate(leaf("gone")), Leaves(SCALES))(Observations()).truth is Truth.FALSE


names = st.sampled_from(["a", "b", "c", "d"])
positive = st.recursive(
    names.map(lambda name: leaf(name, "domain")),
    lambda inner: st.builds(lambda operator, parts: {"operator": operator, "conditions": parts}, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=8,
)
truths = st.dictionaries(names, st.sampled_from(list(Truth)), min_size=4)


@settings(deadline=None)
@given(positive, truths, truths)
def test_more_truth_below_is_never_less_above(tree: dict[str, Any], one: dict[str, Truth], other: dict[str, Truth]) -> None:
    """Without NOT, raising leaves never lowers the root."""
    node = RuleNode.model_validate({"operator": "AND", "conditions": [tree], "on_unknown": "no_match"})
    evaluate = compile_rules(node, Leaves(SCALES))
    higher = {name: max(one[name], other[name], key=lambda truth: truth.value) for name in one}
    low, high = (evaluate(Observations(Observation("domain", name, truth) for name, truth in found.items())) for found in (one, higher))
    assert low.truth.value <= high.truth.value


@settings(deadline=None)
@given(positive, st.dictionaries(names, st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=4))
def test_more_confidence_below_is_never_less_above(tree: dict[str, Any], values: dict[str, tuple[float, float]]) -> None:
    evaluate = compile_rules(RuleNode.model_validate(tree), Leaves(SCALES))
    low, high = (
        evaluate(Observations(Observation("domain", name, Truth.TRUE, pick(pair)) for name, pair in values.items())) for pick in (min, max)
    )
    assert low.score is not None
    assert high.score is not None
    assert low.score <= high.score + 1e-12
    assert low.confidence == pytest.approx(low.score)


@settings(deadline=None)
@given(positive, truths, st.booleans())
def test_confidence_by_the_contract(tree: dict[str, Any], found: dict[str, Truth], scored: bool) -> None:
    """Leaf: the signal's or 1; AND: mean; OR: best branch that holds."""
    confidences = dict(zip("abcd", (0.2, 0.4, 0.6, 0.8), strict=True))

    def expected(node: Mapping[str, Any]) -> float | None:
        if "type" in node:
            return (confidences[node["name"]] if scored else 1.0) if found[node["name"]] is Truth.TRUE else None
        parts = [expected(child) for child in node["conditions"]]
        known = [part for part in parts if part is not None]
        if node["operator"] == "OR":
            return max(known, default=None)
        return sum(known) / len(known) if len(known) == len(parts) else None

    seen = Observations(Observation("domain", name, truth, confidences[name] if scored else None) for name, truth in found.items())
    node = compile_rules(RuleNode.model_validate(tree), Leaves(SCALES))(seen)
    wanted = expected(tree)
    assert node.confidence == (None if wanted is None else pytest.approx(wanted))
    assert (node.score is not None) is (scored and wanted is not None)


LABELS = {"law": 0.6, "code": 0.3, "other": 0.1}


@pytest.mark.parametrize(
    ("more", "matched", "choice", "wanted"),
    [
        ({"label": "law"}, ("law",), True, True),
        ({"label": "code"}, ("law",), True, False),
        ({"label": "law", "predicate": {"gte": 0.7}}, ("law",), True, False),
        ({"label": "code", "predicate": {"gte": 0.2}}, ("law",), True, False),  # of a choice, the label must be the chosen one as well
        ({"label": "code", "predicate": {"gte": 0.2}}, ("law",), False, True),  # of a set, the predicate replaces the selection
        ({"label": "law", "predicate": {"gte": 0.7}}, ("law",), False, False),
        ({"label": "gone", "predicate": {"gte": 0.0}}, ("law",), False, False),
    ],
)
def test_labels(more: dict[str, Any], matched: tuple[str, ...], choice: bool, wanted: bool) -> None:
    rules = RuleNode.model_validate(leaf("topic", "systemone", **more))
    seen = Observation("systemone", "topic", Truth.TRUE, 0.6, 0.6, LABELS, matched)
    node = compile_rules(rules, Leaves(SCALES, frozenset({"topic"} if choice else ())))(Observations([seen]))
    assert node.truth is Truth.of(wanted)


def test_predicates_read_the_raw_value() -> None:
    rules = RuleNode.model_validate(leaf("level", "systemone", predicate={"gt": 2}))
    for value, wanted in ((2.0, False), (2.5, True)):
        node = compile_rules(rules, Leaves(SCALES))(Observations([Observation("systemone", "level", Truth.FALSE, value=value)]))
        assert (node.truth is Truth.TRUE) is wanted
        assert node.score is None
        assert node.confidence == (1.0 if wanted else None)


@pytest.mark.parametrize(
    ("truth", "value", "wanted"),
    [(Truth.TRUE, 3.0, True), (Truth.FALSE, 3.0, True), (Truth.TRUE, 1.0, False), (Truth.TRUE, None, False), (Truth.UNKNOWN, None, False)],
)
def test_predicates_on_any_signal(truth: Truth, value: float | None, wanted: bool) -> None:
    """A signal that measures nothing is 1 when it matches and 0 when not."""
    rules = RuleNode.model_validate(leaf("size", "structure", predicate={"gte": 2}))
    seen = Observation("structure", "size", truth, value=value, reason="structure_evaluation_failed" if truth is Truth.UNKNOWN else None)
    assert compile_rules(rules, Leaves(SCALES))(Observations([seen])).truth is Truth.of(wanted)
    some = RuleNode.model_validate(leaf("size", "structure", predicate={"gte": 1}))
    assert compile_rules(some, Leaves(SCALES))(Observations([Observation("structure", "size", Truth.TRUE)])).truth is Truth.TRUE


def test_a_policy_of_the_signal_holds_for_every_label() -> None:
    """Content that was not read matches, whatever label a condition names."""
    rules = RuleNode.model_validate(leaf("topic", "systemone", label="code", predicate={"gte": 0.9}))
    node = compile_rules(rules, Leaves(SCALES))(Observations([Observation("systemone", "topic", Truth.TRUE, reason="unscanned_scan_budget")]))
    assert (node.truth, node.assumed, node.reason, node.score) == (Truth.TRUE, True, "unscanned_scan_budget", None)
