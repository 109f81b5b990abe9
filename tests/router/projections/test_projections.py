"""Partitions, scores and bands."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.document.projections import Projections
from headway.router.observation import Observation, Observations
from headway.router.projections.compiled import RecipeProjections, compile_projections
from headway.router.projections.graph import ProjectionCycleError
from headway.router.truth import Truth
from tests.router.routed import recipe, route


def apply(projections: dict[str, Any], *found: Observation, kinds: dict[str, str] | None = None) -> tuple[dict[str, float], Observations]:
    seen = Observations(found)
    return dict(RecipeProjections(Projections.model_validate(projections), kinds or {}).apply(seen)), seen


def yes(kind: str, name: str, confidence: float | None = None, value: float | None = None, **labels: float) -> Observation:
    return Observation(kind, name, Truth.TRUE, confidence, value, labels)


def no(kind: str, name: str, value: float | None = None) -> Observation:
    return Observation(kind, name, Truth.FALSE, value=value)


def exclusive(**more: Any) -> dict[str, Any]:
    return {"partitions": [{"name": "p", "semantics": "exclusive", "members": ["a", "b", "c"], "default": "c", **more}]}


@pytest.mark.parametrize("confidences", list(itertools.product([None, 0.2, 0.8], repeat=3)))
def test_one_member_is_kept(confidences: tuple[float | None, ...]) -> None:
    found = [yes("domain", name, each) if each is not None else no("domain", name) for name, each in zip("abc", confidences, strict=True)]
    _, seen = apply(exclusive(), *found)
    holding = [name for name in "abc" if (each := seen.get("domain", name)) is not None and each.truth is Truth.TRUE]
    best = max((each for each in confidences if each is not None), default=None)
    assert holding == ["c" if best is None else "abc"[confidences.index(best)]]
    kept = seen.get("domain", holding[0])
    assert kept is not None
    assert kept.confidence == best


def test_the_default_is_unknown_while_a_member_is() -> None:
    _, seen = apply(exclusive(), no("domain", "a"), Observation("domain", "b", Truth.UNKNOWN, reason="domain_timeout"), no("domain", "c"))
    default = seen.get("domain", "c")
    assert default is not None
    assert (default.truth, default.reason) == (Truth.UNKNOWN, "domain_timeout")
    _, seen = apply(exclusive(), yes("domain", "a", 0.4), Observation("domain", "b", Truth.UNKNOWN, reason="domain_timeout"))
    assert seen.get("domain", "a").truth is Truth.TRUE  # type: ignore[union-attr]


def test_softmax() -> None:
    partition = {"partitions": [{"name": "p", "semantics": "softmax_exclusive", "temperature": 0.1, "members": ["a", "b"], "default": "a"}]}
    _, seen = apply(partition, yes("embedding", "a", 0.6), yes("embedding", "b", 0.7), kinds={"a": "embedding", "b": "embedding"})
    kept = seen.get("embedding", "b")
    assert kept is not None
    assert kept.confidence == pytest.approx(math.exp(7) / (math.exp(6) + math.exp(7)))
    assert seen.get("embedding", "a").truth is Truth.FALSE  # type: ignore[union-attr]


numbers = st.floats(-10, 10)
inputs = st.fixed_dictionaries(
    {"weight": numbers, "value_source": st.sampled_from(["binary", "confidence", "raw"]), "match": numbers, "miss": numbers},
)
states = st.tuples(st.sampled_from(list(Truth)), st.none() | st.floats(0, 1), st.none() | numbers)


@settings(deadline=None)
@given(st.lists(st.tuples(inputs, states), min_size=1, max_size=5))
def test_a_score_is_the_weighted_sum_of_its_inputs(parts: list[tuple[dict[str, Any], tuple[Truth, float | None, float | None]]]) -> None:
    score = {"name": "s", "inputs": [{"type": "keyword", "name": f"k{at}", **given} for at, (given, _) in enumerate(parts)]}
    found = [Observation("keyword", f"k{at}", truth, confidence, value) for at, (_, (truth, confidence, value)) in enumerate(parts)]
    wanted = 0.0
    for part, (truth, confidence, value) in parts:
        if part["value_source"] == "raw":
            number = 0.0 if truth is Truth.UNKNOWN else value if value is not None else confidence or 0.0
        elif truth is not Truth.TRUE:
            number = part["miss"]
        elif part["value_source"] == "confidence":
            number = 1.0 if confidence is None else confidence
        else:
            number = part["match"]
        wanted += part["weight"] * number
    scores, _ = apply({"scores": [score]}, *found)
    assert scores["s"] == pytest.approx(wanted, abs=1e-9)


def reads(type: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "name": name, "weight": 1, **more}


def test_labels_levels_and_metrics_are_raw_numbers() -> None:
    found = [
        yes("systemone", "topic", 0.7, 0.7, law=0.7, code=0.3),
        yes("complexity", "depth:hard", 0.4, 0.4),
        yes("kb_metric", "privacy:best_score", value=0.9),
    ]
    score = {
        "name": "s",
        "inputs": [
            reads("systemone", "topic:code", value_source="raw", weight=100),
            reads("systemone", "topic:gone", value_source="raw", weight=7),
            reads("complexity", "depth", value_source="raw", weight=10),
            {"type": "kb_metric", "kb": "privacy", "metric": "best_score", "value_source": "score", "weight": 1},
            {"type": "kb_metric", "kb": "privacy", "metric": "gone", "value_source": "score", "weight": 1},
        ],
    }
    scores, _ = apply({"scores": [score]}, *found)
    assert scores["s"] == pytest.approx(30 + 4 + 0.9)


BANDS = [{"name": "low", "lt": 0.25}, {"name": "middle", "gte": 0.25, "lt": 0.75}, {"name": "high", "gte": 0.75}, {"name": "any"}]


@pytest.mark.parametrize(("score", "first"), [(-1, "low"), (0.25, "middle"), (0.5, "middle"), (0.75, "high"), (9, "high")])
@pytest.mark.parametrize("method", ["threshold_bands", "multi_emit"])
def test_bands(score: float, first: str, method: str) -> None:
    projections = {
        "scores": [{"name": "s", "inputs": [reads("structure", "n", value_source="raw")]}],
        "mappings": [{"name": "m", "source": "s", "method": method, "outputs": BANDS}],
    }
    _, seen = apply(projections, no("structure", "n", score))
    holding = [each["name"] for each in BANDS if seen.get("projection", each["name"]).truth is Truth.TRUE]  # type: ignore[union-attr]
    assert holding == ([first] if method == "threshold_bands" else [first, "any"])
    assert {each.value for each in seen if each.kind == "projection"} == {score}


@pytest.mark.parametrize(("score", "distance"), [(0.25, 0.0), (0.3, 0.05), (0.5, 0.25), (0.7, 0.05)])
def test_confidence_grows_with_the_distance_from_the_ends(score: float, distance: float) -> None:
    projections = {
        "scores": [{"name": "s", "inputs": [reads("structure", "n", value_source="raw")]}],
        "mappings": [{"name": "m", "source": "s", "calibration": {"method": "sigmoid_distance", "slope": 6}, "outputs": BANDS}],
    }
    _, seen = apply(projections, no("structure", "n", score))
    assert seen.get("projection", "middle").confidence == pytest.approx(1 / (1 + math.exp(-6 * distance)))  # type: ignore[union-attr]
    assert seen.get("projection", "low").confidence is None  # type: ignore[union-attr]


def test_scores_are_computed_in_the_order_of_their_needs() -> None:
    """Declared the other way round: a score that reads a band of a score that reads a score."""
    projections = {
        "scores": [
            {"name": "last", "inputs": [reads("projection", "urgent", value_source="confidence", weight=2)]},
            {"name": "second", "inputs": [reads("projection", "first", weight=3)]},
            {"name": "first", "inputs": [reads("keyword", "k", match=0.5)]},
        ],
        "mappings": [{"name": "m", "source": "second", "outputs": [{"name": "urgent", "gt": 1}]}],
    }
    for order in itertools.permutations(projections["scores"]):
        scores, _ = apply({**projections, "scores": list(order)}, yes("keyword", "k"))
        assert scores == {"first": 0.5, "second": 1.5, "last": 2.0}
    scores, _ = apply(projections, no("keyword", "k"))
    assert scores == {"first": 0.0, "second": 0.0, "last": 0.0}


def test_a_circle_is_refused_and_named() -> None:
    circle = [{"name": one, "inputs": [reads("projection", other)]} for one, other in (("a", "b"), ("b", "c"), ("c", "a"))]
    with pytest.raises(ProjectionCycleError, match=r"(a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)"):
        compile_projections(recipe({"projections": {"scores": circle}}))


def test_from_words_to_a_decision() -> None:
    built = recipe(
        {
            "signals": {
                "keywords": [{"name": "code", "operator": "OR", "keywords": ["python", "regex"]}],
                "structure": [{"name": "size", "feature": {"type": "count", "source": {"type": "text_bytes"}}, "predicate": {"gt": 10_000}}],
            },
            "projections": {
                "scores": [{"name": "effort", "inputs": [reads("keyword", "code"), reads("structure", "size", value_source="raw", weight=0.01)]}],
                "mappings": [{"name": "band", "source": "effort", "outputs": [{"name": "easy", "lt": 1.0}, {"name": "hard", "gte": 1.0}]}],
            },
            "decisions": [{"name": band, "rules": {"type": "projection", "name": band}} for band in ("easy", "hard")],
        }
    )
    assert route(built, "hi").decision.chosen == "easy"
    assert route(built, "fix this python regex").decision.chosen == "hard"
    assert route(built, "x" * 200).decision.chosen == "hard"
    assert route(built, "x" * 50).scores == {"effort": 0.5}
