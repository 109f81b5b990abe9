"""Cards against what consumers need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.bindings import requirements_of
from headway.router.deployments.card import Card, cards_of
from headway.router.deployments.fit import Requirement, misfit
from headway.router.deployments.specification import Replica, Specification
from tests.router.deployments.setups import document

RAW: dict[str, Any] = {
    "id": "m", "surfaces": ["classify", "rerank"], "question_types": [], "model_sha256": "a" * 64,
    "heads": [
        {"name": "topic", "kind": "sequence", "labels": ["a", "b"], "inputs": ["text"]},
        {"name": "risk", "kind": "scores", "labels": ["x", "y"], "operating_point_sha256": "f" * 64},
    ],
    "rerank": {"exits": [{"layer": 6, "dimension": 32}, {"layer": 12, "dimension": 64}], "default": {"layer": 12, "dimension": 64}},
    "limits": {"max_input_tokens": 512},
}  # fmt: skip
PLAIN = Specification("m", (Replica(),))


def card(**fields: Any) -> Card:
    return cards_of(json.dumps({"api_version": "2.2.0", "data": [{**RAW, **fields}]}).encode())["m"]


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        (Requirement("m", "c", "classify", ("sequence",)), None),
        (Requirement("m", "c", "classify", ("scores",)), "a head of kind scores, topic is of kind sequence"),
        (Requirement("m", "c", "classify", ("scores",), "risk"), None),
        (Requirement("m", "c", "embeddings"), "the surface embeddings, the model serves classify, rerank"),
        (Requirement("m", "c", "classify", (), "topic", ("b",)), None),
        (Requirement("m", "c", "classify", (), "topic", ("b", "z")), "the labels z, topic has a, b"),
        (Requirement("m", "c", "classify", (), "topic", ("a", "b"), True), None),
        (Requirement("m", "c", "classify", (), "topic", ("b", "a"), True), "the labels b, a in this order, topic has a, b"),
        (Requirement("m", "c", "rerank", exit=(6, 32)), None),
        (Requirement("m", "c", "rerank", exit=(0, 32)), None),
        (Requirement("m", "c", "rerank", exit=(6, 64)), "the exit layer 6, dimension 64; the model has 6/32, 12/64"),
        (Requirement("m", "c", "classify", (), "risk", operating_point="f" * 64), None),
        (Requirement("m", "c", "classify", (), "risk", operating_point="e" * 64), f"the operating point {'e' * 12}, risk has {'f' * 12}"),
    ],
)
def test_requirements(requirement: Requirement, problem: str | None) -> None:
    expected = None if problem is None else f"a binding does not match the model: c needs {problem}"
    assert misfit(card(), PLAIN, [requirement]) == expected


def test_what_bindings_require(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(json.dumps({"category_to_idx": {"b": 1, "a": 0}}))
    (tmp_path / "back.json").write_text(json.dumps({"idx_to_label": {"1": "b", "0": "a"}}))
    bindings = {
        "domain_classifier": {"deployment": "m", "contract": "label_distribution.v1", "head": "topic", "mapping_path": "map.json"},
        "fact_check_classifier": {"deployment": "m", "contract": "label_distribution.v1", "mapping_path": "back.json"},
        "rag.reranker": {"deployment": "m", "contract": "relevance_scores.v1", "pair_scorer": {"layer": 6}},
        "embedding": {"deployment": "e", "contract": "embedding.v1"},
    }
    found = requirements_of(document({}, bindings=bindings, folder=tmp_path))
    assert found == [
        Requirement("m", "domain_classifier", "classify", ("sequence",), "topic", ("a", "b"), True),
        Requirement("m", "fact_check_classifier", "classify", ("sequence",), None, ("a", "b"), True),
        Requirement("m", "rag.reranker", "rerank", exit=(6, 0)),
        Requirement("e", "embedding", "embeddings"),
    ]


@pytest.mark.parametrize("content", [None, "no json", "[]", "{}", '{"label_to_idx": ["a"]}', '{"idx_to_label": {"x": "a"}}'])
def test_label_files_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "map.json").write_text(content)
    bindings = {"domain_classifier": {"deployment": "m", "contract": "label_distribution.v1", "mapping_path": "map.json"}}
    with pytest.raises(ConfigError, match=r"mapping_path map\.json cannot be used"):
        requirements_of(document({}, bindings=bindings, folder=tmp_path))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": {}}', b"\xff"])
def test_what_is_no_list_of_models(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        cards_of(body)


def test_cards_of_strange_shapes_are_read_as_far_as_they_go() -> None:
    strange = {"id": "m", "surfaces": "all", "heads": [{"kind": "token"}, 3], "limits": [], "embedding": 7, "rerank": {"exits": [{}]}, "model_sha256": 9}
    found = cards_of(json.dumps({"data": [strange, 4, {"id": 3}]}).encode())
    assert list(found) == ["m"]
    assert (found["m"].surfaces, found["m"].heads, found["m"].exits, found["m"].model_sha256) == (frozenset(), {}, (), "")


def test_replicas_may_run_differently() -> None:
    there = {"device": "cuda:0", "dtype": "bfloat16", "engine": "other", "status": "ready", "created": 5, "id": "m"}
    assert card(**there).identity == card().identity
    assert card(model_sha256="b" * 64).identity != card().identity
    assert card(revision="1").identity != card().identity
