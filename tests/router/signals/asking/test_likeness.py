"""Signals that compare vectors: embedding, reask, complexity, kb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from headway.errors import ConfigError
from headway.router.config.document.model_signals import PrototypeScoring
from headway.router.deployments.calls import EMBEDDING_ENDPOINT, Unanswered
from headway.router.signals.asking.prototypes import prototypes, similarity
from headway.router.truth import Truth
from tests.router.scripted_calls import ScriptedCalls
from tests.router.signals.asking.observing import EMBEDDING, compiled, observe, observed, recipe_of

AT = {"0": [1.0, 0.0], "30": [3**0.5 / 2, 0.5], "60": [0.5, 3**0.5 / 2], "90": [0.0, 1.0], "180": [-1.0, 0.0]}  # degrees


def directions(**more: Any) -> ScriptedCalls:
    return ScriptedCalls(vectors=lambda given: AT[given if isinstance(given, str) else given["image"][-2:].lstrip(",")], **more)


def with_config(**config: Any) -> dict[str, Any]:
    return {**EMBEDDING, "embeddings": {"semantic": {"embedding_config": config}}}


HARD = {"enable_soft_matching": False}


@pytest.mark.parametrize(("method", "score"), [("max", 3**0.5 / 2), ("mean", (3**0.5 / 2 + 0.5) / 2), ("any", 3**0.5 / 2)])
def test_embedding_aggregates_over_candidates(method: str, score: float) -> None:
    rules = [{"name": "r", "threshold": score - 1e-6, "candidates": ["0", "90"], "aggregation_method": method}]
    found = observed("embedding", rules, directions(), "30", catalog=with_config(**HARD))["r"]
    assert (found.truth, found.value) == (Truth.TRUE, pytest.approx(score, abs=1e-6))
    rules[0]["threshold"] = score + 1e-6
    assert observed("embedding", rules, directions(), "30", catalog=with_config(**HARD))["r"].truth is Truth.FALSE


def test_unwanted_candidates_are_subtracted() -> None:
    rules = [{"name": "r", "threshold": 0.1, "candidates": ["0"], "negative_candidates": ["90"]}]
    assert observed("embedding", rules, directions(), "60", catalog=EMBEDDING)["r"].value == pytest.approx(0.5 - 3**0.5 / 2, abs=1e-6)


@pytest.mark.parametrize(("top_k", "matched"), [(1, ["near"]), (2, ["near", "mid"]), (0, ["near", "mid", "far"])])
def test_as_many_rules_match_as_top_k_says_the_best_first(top_k: int, matched: list[str]) -> None:
    rules = [{"name": "far", "threshold": 0.0, "candidates": ["90"]}, {"name": "mid", "threshold": 0.4, "candidates": ["60"]},
             {"name": "near", "threshold": 0.9, "candidates": ["0"]}]  # fmt: skip
    found = observed("embedding", rules, directions(), "0", catalog=with_config(top_k=top_k, **HARD))
    assert {name for name, one in found.items() if one.truth is Truth.TRUE} == set(matched)


@pytest.mark.parametrize(("config", "truth"), [({}, Truth.TRUE), ({"min_score_threshold": 0.51}, Truth.FALSE), (HARD, Truth.FALSE)])
def test_soft_matching_takes_the_best_rule_below_its_threshold(config: dict[str, Any], truth: Truth) -> None:
    rules = [{"name": "r", "threshold": 0.9, "candidates": ["0"]}, {"name": "s", "threshold": 0.9, "candidates": ["180"]}]
    found = observed("embedding", rules, directions(), "60", catalog=with_config(**{"min_score_threshold": 0.499, **config}))
    assert [found["r"].truth, found["s"].truth] == [truth, Truth.FALSE]
    assert found["r"].evidence == ({"soft": True} if truth is Truth.TRUE else {})


def test_a_picture_is_compared_with_texts_and_pictures(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"")
    url = "data:image/png;base64,"
    rules = [{"name": "r", "threshold": 0.9, "candidates": ["90"], "image_candidates": [url + "0"], "query_modality": "image"}]
    messages = [{"role": "user", "content": [{"type": "text", "text": "180"}, {"type": "image_url", "image_url": {"url": url + "30"}},
                                             {"type": "image_url", "image_url": {"url": url + "0"}}]}]  # fmt: skip
    found = observed("embedding", rules, directions(), catalog=EMBEDDING, messages=messages)["r"]
    assert (found.truth, found.value) == (Truth.TRUE, pytest.approx(1.0))  # the nearest picture counts
    calls = directions()
    assert observed("embedding", rules, calls, "no picture", catalog=EMBEDDING)["r"].truth is Truth.FALSE
    assert calls.calls == []


@pytest.mark.parametrize("reference", ["https://example.org/x.png", "/nowhere/x.png"])
def test_pictures_that_cannot_be_had_are_refused(reference: str) -> None:
    with pytest.raises(ConfigError, match="image candidate"):
        compiled("embedding", recipe_of({"embeddings": [{"name": "r", "threshold": 0.5, "image_candidates": [reference]}]}, EMBEDDING))


@pytest.mark.parametrize("rule", [{"name": "r", "threshold": 0.5}, {"name": "r", "threshold": 1.1, "candidates": ["x"]},
                                  {"name": "r", "threshold": 2.1, "candidates": ["x"], "negative_candidates": ["y"]}])  # fmt: skip
def test_rules_that_could_never_match_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        recipe_of({"embeddings": [rule]})


def test_who_makes_vectors() -> None:
    rules = {"embeddings": [{"name": "r", "threshold": 0.5, "candidates": ["x"]}]}
    with pytest.raises(ConfigError, match="nothing makes vectors"):
        compiled("embedding", recipe_of(rules))
    endpoint = {"embeddings": {"semantic": {"endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}}}
    assert compiled("embedding", recipe_of(rules, endpoint))[0].deployments() == {EMBEDDING_ENDPOINT}
    assert compiled("embedding", recipe_of(rules, {**endpoint, **EMBEDDING}))[0].deployments() == {"minilm"}
    own = recipe_of(rules, EMBEDDING, model_bindings={"embedding": {"deployment": "own", "contract": "embedding.v1"}})
    assert compiled("embedding", own)[0].deployments() == {"own"}


def test_vectors_that_do_not_come_are_unknown() -> None:
    rules = [{"name": "r", "threshold": 0.5, "candidates": ["0"]}]
    found = observed("embedding", rules, ScriptedCalls(vectors=lambda given: Unanswered("overloaded")), "x", catalog=EMBEDDING)["r"]
    assert (found.truth, found.reason) == (Truth.UNKNOWN, "embedding_overloaded")


def test_rules_of_one_kind_ask_once() -> None:
    rules = [{"name": name, "threshold": 0.5, "candidates": [name]} for name in ("0", "90")]
    calls = directions()
    observed("embedding", rules, calls, "30", catalog=EMBEDDING)
    assert [asked for _, _, asked in calls.calls] == [["30", "0", "90"]]


def test_prototypes_merge_what_is_near_and_keep_the_largest_clusters() -> None:
    vectors = np.array([AT["0"], AT["30"], AT["90"], AT["180"]], np.float32)
    found = prototypes(vectors, PrototypeScoring(cluster_similarity_threshold=0.8, max_prototypes=2))
    middle = np.array([1 + 3**0.5 / 2, 0.5])
    np.testing.assert_allclose(found, [middle / np.linalg.norm(middle), AT["90"]], atol=1e-6)


def test_prototype_scoring_weighs_the_best_with_the_best_few() -> None:
    vectors = np.array([AT["0"], AT["90"], AT["180"]], np.float32)
    scoring = PrototypeScoring(best_weight=0.5, top_m=2)
    assert similarity(np.array(AT["0"], np.float32), vectors, scoring) == pytest.approx(0.5 * 1 + 0.5 * (1 + 0) / 2)
    assert similarity(np.array(AT["0"], np.float32), vectors, PrototypeScoring(enabled=False)) == pytest.approx(1)


@pytest.mark.parametrize(("turns", "once", "twice"), [
    (["0", "0", "0"], Truth.TRUE, Truth.TRUE), (["90", "0", "0"], Truth.TRUE, Truth.FALSE), (["0", "90", "0"], Truth.FALSE, Truth.FALSE),
    (["0", "0"], Truth.TRUE, Truth.FALSE), (["0"], Truth.FALSE, Truth.FALSE),
])  # fmt: skip
def test_reask_wants_a_streak_of_like_turns(turns: list[str], once: Truth, twice: Truth) -> None:
    rules = [{"name": "once"}, {"name": "twice", "lookback_turns": 2}]
    found = observed("reask", rules, directions(), *turns, catalog=EMBEDDING)
    assert [found["once"].truth, found["twice"].truth] == [once, twice]


def test_reask_without_vectors_asks_the_decision_model() -> None:
    calls = ScriptedCalls(decisions=lambda question, state: {"type": "noul", "noul": 0.9})
    found = observed("reask", [{"name": "once"}], calls, "a", "b")
    assert (found["once"].truth, found["once"].confidence) == (Truth.TRUE, 0.9)
    assert calls.calls[0][2][1] == {"earlier": ["a"], "latest": "b"}


@pytest.mark.parametrize(("text", "level"), [("0", "hard"), ("90", "easy")])
def test_complexity_by_likeness(text: str, level: str) -> None:
    rules = [{"name": "c", "hard": {"candidates": ["0"]}, "easy": {"candidates": ["90"]}}]
    found = observed("complexity", rules, directions(), text, catalog=EMBEDDING)
    assert [name for name, one in found.items() if one.truth is Truth.TRUE] == [f"c:{level}"]
    assert [one.value for one in found.values()] == [pytest.approx(1.0 if level == "hard" else -1.0)] * 3


@pytest.mark.parametrize(("threshold", "level"), [(0.3, "hard"), (0.37, "medium")])
def test_complexity_is_medium_within_the_threshold(threshold: float, level: str) -> None:
    rules = [{"name": "c", "threshold": threshold, "hard": {"candidates": ["0"]}, "easy": {"candidates": ["90"]}}]
    assert observed("complexity", rules, directions(), "30", catalog=EMBEDDING)[f"c:{level}"].truth is Truth.TRUE  # 0.366


@pytest.mark.parametrize(("bounds", "level"), [
    ({}, "easy"), ({"hard_above": 0.4}, "hard"), ({"hard_above": 0.5, "easy_below": 0.4}, "medium"), ({"easy_below": 0.46}, "easy"),
    ({"hard_below": 0.6}, "hard"), ({"easy_above": 0.5}, "easy"),
])  # fmt: skip
def test_complexity_by_a_model(bounds: dict[str, float], level: str) -> None:
    calls = ScriptedCalls(heads=lambda text: {"easy": 0.45, "medium": 0.2, "hard": 0.35})  # 0.45 expected
    catalog = {"bindings": {"complexity": {"deployment": "c", "contract": "label_distribution.v1"}}}
    found = observed("complexity", [{"name": "c", **bounds}], calls, "x", catalog=catalog)
    assert [name for name, one in found.items() if one.truth is Truth.TRUE] == [f"c:{level}"]
    assert found["c:easy"].value == pytest.approx(0.45)


def base(tmp_path: Path, **more: Any) -> dict[str, Any]:
    labels = {"private": {"exemplars": ["0"]}, "internal": {"exemplars": ["30"]}, "public": {"exemplars": ["90", "180"]}}
    (tmp_path / "labels.json").write_text(json.dumps({"labels": labels}))
    kb = {"name": "kb", "source": {"path": str(tmp_path)}, "threshold": 0.8, "groups": {"secret": ["private", "internal"], "open": ["public"]},
          "metrics": [{"name": "secrecy", "type": "group_margin", "positive_group": "secret", "negative_group": "open"}], **more}  # fmt: skip
    return {**EMBEDDING, "kbs": [kb]}


@pytest.mark.parametrize(("target", "match", "truth"), [
    (("label", "private"), "best", Truth.TRUE), (("label", "internal"), "best", Truth.FALSE), (("label", "internal"), "threshold", Truth.TRUE),
    (("group", "secret"), "best", Truth.TRUE), (("group", "open"), "threshold", Truth.FALSE),
])  # fmt: skip
def test_kb_by_label_or_group(tmp_path: Path, target: tuple[str, str], match: str, truth: Truth) -> None:
    rules = [{"name": "r", "kb": "kb", "target": {"kind": target[0], "value": target[1]}, "match": match}]
    found = observed("kb", rules, directions(), "0", catalog=base(tmp_path))
    assert found["r"].truth is truth
    metrics = {name: one.value for name, one in found.items() if one.kind == "kb_metric"}
    assert metrics == {"kb:best_score": pytest.approx(1), "kb:best_matched_score": pytest.approx(1), "kb:secrecy": pytest.approx(1)}


def test_kb_thresholds_of_labels(tmp_path: Path) -> None:
    rules = [{"name": "r", "kb": "kb", "target": {"kind": "label", "value": "private"}}]
    catalog = base(tmp_path, label_thresholds={"private": 0.9})
    assert observed("kb", rules, directions(), "0", catalog=catalog)["r"].truth is Truth.TRUE
    catalog = base(tmp_path, label_thresholds={"internal": 0.9})
    found = observed("kb", rules, directions(), "60", catalog=catalog)
    assert (found["r"].truth, found["kb:best_matched_score"].value) == (Truth.FALSE, pytest.approx(3**0.5 / 2))


def test_kb_metrics_that_only_a_projection_reads(tmp_path: Path) -> None:
    scores = [{"name": "s", "method": "weighted_sum", "inputs": [{"type": "kb_metric", "kb": "kb", "metric": "secrecy", "weight": 1.0}]}]
    recipe = recipe_of({"kb": []}, base(tmp_path), projections={"scores": scores})
    assert observe(compiled("kb", recipe), directions(), "90")["kb:secrecy"].value == pytest.approx(0.5 - 1)


@pytest.mark.parametrize(("change", "message"), [
    ({"source": {"path": "/nowhere"}}, "cannot be read"), ({"groups": {"secret": ["hidden"], "open": ["public"]}}, "does not have: hidden"),
    ({"label_thresholds": {"hidden": 0.5}}, "does not have: hidden"), ({"source": {"path": "{folder}/sub", "manifest": "../labels.json"}}, "outside"),
    ({"name": "other"}, "not declared"),
])  # fmt: skip
def test_knowledge_bases_that_cannot_be_used(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    change = json.loads(json.dumps(change).replace("{folder}", str(tmp_path)))
    rules = [{"name": "r", "kb": "kb", "target": {"kind": "label", "value": "private"}}]
    with pytest.raises(ConfigError, match=message):
        compiled("kb", recipe_of({"kb": rules}, base(tmp_path, **change)))


def test_kb_rules_about_labels_that_are_not_there(tmp_path: Path) -> None:
    rules = [{"name": "r", "kb": "kb", "target": {"kind": "group", "value": "private"}}]
    with pytest.raises(ConfigError, match="no group 'private'"):
        compiled("kb", recipe_of({"kb": rules}, base(tmp_path)))
