"""Which matching decision wins: total, independent of the configuration's order, and as the rules of ordering say."""

from __future__ import annotations

import functools
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.decisions.ranking import Strategy, ranked
from headway.router.decisions.result import Evaluated, TraceNode
from headway.router.truth import Truth

ROOT = TraceNode("AND", Truth.TRUE)


def decision(name: str, priority: int = 0, score: float | None = None, scale: str | None = "probability", tier: int = 0, catch_all: bool = False) -> Evaluated:
    return Evaluated(name, True, score, ROOT, catch_all, None, score, scale if score is not None else None, priority, tier)


evaluated = st.builds(
    decision,
    st.uuids().map(str),
    st.integers(-2, 2),
    st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from(["probability", "probability", "probability", "similarity"]),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.booleans(),
)
pools = st.lists(evaluated, min_size=1, max_size=7, unique_by=lambda each: each.name)


def oracle(pool: list[Evaluated], strategy: Strategy) -> list[str]:
    """By comparing pairs, one criterion after the other."""

    def before(one: Evaluated, other: Evaluated) -> int:
        tiered = any(each.tier for each in pool)
        if tiered and one.tier != other.tier:
            return -1 if one.tier < other.tier else 1
        if one.catch_all != other.catch_all:
            return 1 if one.catch_all else -1
        peers = [each for each in pool if not each.catch_all and (each.tier == one.tier or not tiered)]
        scores_count = all(each.score is not None for each in peers) and len({each.scale for each in peers}) == 1
        criteria: list[tuple[float, float]] = [(one.priority, other.priority)]
        if scores_count:
            scores = (one.score or 0.0, other.score or 0.0)
            criteria = [*criteria, scores] if strategy == "priority" else [scores, *criteria]
        for mine, others in criteria:
            if mine != others:
                return -1 if mine > others else 1
        return -1 if one.name < other.name else int(one.name > other.name)

    return [each.name for each in sorted(pool, key=functools.cmp_to_key(before))]


@settings(max_examples=300, deadline=None)
@given(pools, st.sampled_from(["priority", "confidence"]))
def test_the_order_is_that_of_the_criteria(pool: list[Evaluated], strategy: Strategy) -> None:
    assert [each.name for each in ranked(pool, strategy)] == oracle(pool, strategy)


@settings(deadline=None)
@given(pools, st.sampled_from(["priority", "confidence"]), st.randoms(use_true_random=False))
def test_the_order_is_total(pool: list[Evaluated], strategy: Strategy, random: object) -> None:
    order = [each.name for each in ranked(pool, strategy)]
    shuffled = list(pool)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [each.name for each in ranked(shuffled, strategy)] == order
    assert sorted(order) == sorted(each.name for each in pool)


@settings(deadline=None)
@given(pools, st.sampled_from(["priority", "confidence"]), st.integers(1, 3))
def test_more_priority_never_places_a_decision_lower(pool: list[Evaluated], strategy: Strategy, more: int) -> None:
    raised = pool[0]
    higher = Evaluated(raised.name, True, raised.confidence, ROOT, raised.catch_all, None, raised.score, raised.scale, raised.priority + more, raised.tier)
    before = [each.name for each in ranked(pool, strategy)].index(raised.name)
    after = [each.name for each in ranked([higher, *pool[1:]], strategy)].index(raised.name)
    assert after <= before


def names(*pool: Evaluated, strategy: Strategy = "priority") -> list[str]:
    orders = {tuple(each.name for each in ranked(list(order), strategy)) for order in itertools.permutations(pool)}
    assert len(orders) == 1
    return list(orders.pop())


def test_ties_go_by_name() -> None:
    assert names(decision("b"), decision("a")) == ["a", "b"]
    assert names(decision("b", 1, 0.5), decision("a", 1, 0.5), strategy="confidence") == ["a", "b"]


def test_strategies() -> None:
    low, high = decision("low", 1, 0.9), decision("high", 2, 0.8)
    assert names(low, high) == ["high", "low"]
    assert names(low, high, strategy="confidence") == ["low", "high"]
    assert names(decision("b", 1, 0.9), decision("a", 1, 0.8)) == ["b", "a"]  # equal priority: the more confident one


def test_a_score_counts_only_against_scores_of_its_scale() -> None:
    law = decision("law", 180, 0.7)
    assert names(law, decision("code", 60)) == ["law", "code"]
    assert names(law, decision("code", 60), strategy="confidence") == ["law", "code"]
    assert names(law, decision("like", 60, 0.99, "similarity"), strategy="confidence") == ["law", "like"]
    assert names(law, decision("sure", 60, 0.99), strategy="confidence") == ["sure", "law"]


def test_tiers_and_catch_alls() -> None:
    untiered, tiered = decision("untiered", 10), decision("tiered", 900, tier=1)
    assert names(untiered, tiered) == ["untiered", "tiered"]
    everything = decision("everything", 500, 0.0, catch_all=True)
    for strategy in ("priority", "confidence"):
        assert names(everything, decision("real", 100, 0.9), strategy=strategy)[0] == "real"
        assert names(everything, decision("real", 100), strategy=strategy)[0] == "real"
    assert names(decision("all0", catch_all=True), decision("real1", tier=1)) == ["all0", "real1"]
    # A catch-all takes nothing from the others' confidences.
    assert names(everything, decision("a", 2, 0.5), decision("b", 1, 0.9), strategy="confidence") == ["b", "a", "everything"]
