"""The self-check: two equal runs, finite numbers, and the record, with every status and reason there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ArtifactError, SelfCheckError
from headway.runtime.model_facts import HeadFacts, ModelFacts
from headway.runtime.package import Package
from headway.runtime.selfcheck.golden import Strictness, compare, golden_answers
from headway.runtime.selfcheck.golden_reference import GoldenReference, beside, cached, find_reference, write_reference
from headway.runtime.selfcheck.golden_requests import golden_requests
from headway.runtime.selfcheck.kernel_choices import unapplied
from tests.runtime.toy_plugins import ToyModel, write_toy

CPU = Strictness(1e-3)
SHA = "f" * 64


def answers_of(fault: str | None) -> dict[str, Any]:
    model = ToyModel(fault, 2)
    return golden_answers(model, golden_requests(model.facts, ("embeddings", "classify")), CPU)


def test_one_request_for_each_head_and_surface() -> None:
    heads = (HeadFacts("domain", "sequence", ("a", "b")), HeadFacts("halu", "token", ("s", "u"), inputs=("grounded",)))
    facts = ModelFacts(1, "float32", {}, heads=heads, question_types=("choice", "score", "set"))
    requests = golden_requests(facts, ("decisions", "classify", "embeddings", "rerank"))
    assert [each.name for each in requests] == ["decisions", "classify/domain", "classify/halu", "embeddings", "rerank"]
    assert list(requests[0].request.main.questions) == ["choice", "score"]
    assert type(requests[2].request.inputs[0]).__name__ == "GroundedInput"


def test_each_request_runs_twice() -> None:
    model = ToyModel(None, 2)
    golden_answers(model, golden_requests(model.facts, ("embeddings",)), CPU)
    assert len(model.passes) == 4  # two texts, each alone, twice
    assert model.passes[:2] == model.passes[2:]


def test_runs_that_differ_fail() -> None:
    with pytest.raises(SelfCheckError, match="two runs of the same request differ"):
        answers_of("unstable")


def test_devices_that_never_repeat_may_differ_a_little() -> None:
    model = ToyModel("unstable", 2)
    requests = golden_requests(model.facts, ("embeddings",))
    assert golden_answers(model, requests, Strictness(0.02, 0.02))


def test_numbers_that_are_not_finite_fail() -> None:
    with pytest.raises(SelfCheckError, match="a number that is not finite"):
        answers_of("not_finite")


def test_without_a_record_nothing_is_proven_and_nothing_is_wrong() -> None:
    result = compare(answers_of(None), None, CPU)
    assert (result.status, result.reference, result.reason, result.checked) == ("unverified", "", None, 2)


def test_equal_answers_match() -> None:
    answers = answers_of(None)
    result = compare(answers, GoldenReference("here", SHA, json.loads(json.dumps(answers))), CPU)
    assert (result.status, result.checked, result.matched, result.reference) == ("matched", 2, 2, "here")


def test_questions_are_counted_one_by_one_and_usage_does_not_count() -> None:
    recorded = {"decisions": {"answers": {"a": {"noul": 0.5}, "b": {"noul": 0.25}}, "usage": {"input_tokens": 5}}}
    now = {"decisions": {"answers": {"a": {"noul": 0.5005}, "b": {"noul": 0.3}}, "usage": {"input_tokens": 6}}}
    result = compare(now, GoldenReference("r", SHA, recorded), CPU)
    assert (result.status, result.checked, result.matched) == ("failed", 2, 1)
    assert result.reason is not None
    assert "decisions b is off by 0.05" in result.reason
    assert "decisions a" not in result.reason
    assert compare(now, GoldenReference("r", SHA, recorded), Strictness(0.1)).status == "matched"


@pytest.mark.parametrize(
    "recorded",
    [
        {"embeddings": {"data": [1.0]}, "classify/parity": {}},
        {"embeddings": {"data": [1.0], "more": 1}},
        {"embeddings": {"data": ["x"]}},
        {},
    ],
)
def test_other_keys_or_kinds_fail(recorded: dict[str, Any]) -> None:
    assert compare({"embeddings": {"data": [1.0]}}, GoldenReference("r", SHA, recorded), CPU).status == "failed"


@pytest.mark.parametrize(
    ("present", "untuned", "says"),
    [
        ({}, {}, "FLA is not installed"),
        ({"FLA": None}, {}, "FLA is not installed"),
        ({"FLA": "0.4.1"}, {}, "they were recorded with FLA 0.5.2, not 0.4.1"),
        ({"FLA": ImportError("x")}, {}, "FLA failed to import"),
        ({"FLA": "0.5.2"}, {"FLA": "chunk_delta"}, "FLA has no autotuned kernel for chunk_delta"),
    ],
)
def test_recorded_kernels_that_are_not_here(present: dict[str, Any], untuned: dict[str, str], says: str) -> None:
    sentences = unapplied({"FLA": "0.5.2"}, present, untuned)
    assert len(sentences) == 1
    assert says in sentences[0]
    answers = answers_of(None)
    result = compare(answers, GoldenReference("r", SHA, answers, {"FLA": "0.5.2"}), CPU, sentences)
    assert result.status == "unverified"
    assert result.reason is not None
    assert result.reason.startswith("kernel choices not applied: ")
    assert says in result.reason


def test_recorded_kernels_that_are_here() -> None:
    assert unapplied({"FLA": "0.5.2"}, {"FLA": "0.5.2", "other": None}, {}) == []


def test_records_are_found_beside_the_package_and_in_the_cache(tmp_path: Path) -> None:
    package = Package("toy", write_toy(tmp_path / "toy"))
    assert find_reference(package, SHA, "cpu", str(tmp_path / "cache")) is None
    write_reference(cached(SHA, str(tmp_path / "cache")), SHA, "cpu", {"a": {"x": 1}}, {"FLA": "1"})
    found = find_reference(package, SHA, "cpu", str(tmp_path / "cache"))
    assert found is not None
    assert found.answers == {"a": {"x": 1}}
    assert found.kernels == {"FLA": "1"}
    write_reference(beside(package), SHA, "cpu", {"a": {"x": 2}}, {})
    nearer = find_reference(package, SHA, "cpu", str(tmp_path / "cache"))
    assert nearer is not None
    assert nearer.answers == {"a": {"x": 2}}
    assert find_reference(package, SHA, "cuda", str(tmp_path / "cache")) is None


def test_a_record_of_another_model_is_none_and_is_replaced(tmp_path: Path) -> None:
    package = Package("toy", write_toy(tmp_path / "toy"))
    path = beside(package)
    write_reference(path, "0" * 64, "cpu", {"a": 1}, {})
    assert find_reference(package, SHA, "cpu", str(tmp_path)) is None
    write_reference(path, SHA, "cuda", {"a": 2}, {})
    write_reference(path, SHA, "cpu", {"a": 3}, {})
    content = json.loads(path.read_text())
    assert content["model_sha256"] == SHA
    assert sorted(content["accelerators"]) == ["cpu", "cuda"]


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    package = Package("toy", write_toy(tmp_path / "toy"))
    beside(package).write_text('{"format": "other"}')
    with pytest.raises(ArtifactError, match="no file of recorded answers"):
        find_reference(package, SHA, "cpu", str(tmp_path))
