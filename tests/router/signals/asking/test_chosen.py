"""domain, user_feedback, modality, preference, fact_check: a head, or a question, and thresholds."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.deployments.calls import Unanswered
from headway.router.signals.table import KIND_OF_TYPE
from headway.router.truth import Truth
from tests.router.scripted_calls import ScriptedCalls
from tests.router.signals.asking.observing import EMBEDDING, compiled, observe, observed, recipe_of

DOMAINS = [{"name": "code", "mmlu_categories": ["computer science"]}, {"name": "law"}]


def bound(consumer: str, **more: Any) -> dict[str, Any]:
    return {"bindings": {consumer: {"deployment": "head", "contract": "label_distribution.v1"}}, **more}


def chosen(probabilities: dict[str, float]) -> Any:
    return lambda question, state: {"type": "choice", "choice": max(probabilities, key=probabilities.__getitem__), "probabilities": probabilities}


def test_a_domain_matches_by_its_name_or_a_category_of_the_model() -> None:
    calls = ScriptedCalls(heads=lambda text: {"computer_science": 0.8, "law": 0.2})
    found = observed("domain", DOMAINS, calls, "sort a list", catalog=bound("domain_classifier"))
    assert (found["code"].truth, found["code"].confidence, found["code"].matched_labels) == (Truth.TRUE, 0.8, ("computer_science",))
    assert (found["law"].truth, found["law"].value, found["law"].confidence) == (Truth.FALSE, 0.2, None)
    assert calls.calls == [("classify", "head", ["sort a list"])]


@pytest.mark.parametrize(("threshold", "truth"), [(0.6, Truth.TRUE), (0.61, Truth.FALSE)])
def test_the_threshold_is_inclusive(threshold: float, truth: Truth) -> None:
    catalog = bound("domain_classifier", modules={"classifier": {"domain": {"threshold": threshold}}})
    calls = ScriptedCalls(heads=lambda text: {"law": 0.6, "other": 0.4})
    assert observed("domain", DOMAINS, calls, "may I?", catalog=catalog)["law"].truth is truth


def test_below_the_threshold_the_fallback_category_counts() -> None:
    catalog = bound("domain_classifier", modules={"classifier": {"domain": {"threshold": 0.9, "fallback_category": "law"}}})
    calls = ScriptedCalls(heads=lambda text: {"computer science": 0.7, "law": 0.3})
    found = observed("domain", DOMAINS, calls, "hm", catalog=catalog)
    assert [found[name].truth for name in ("code", "law")] == [Truth.FALSE, Truth.TRUE]


def test_without_a_binding_the_decision_model_chooses_between_all_declared_domains() -> None:
    recipe = recipe_of({"domains": DOMAINS}, {"system": {"decision_model": {"deployment": "judge"}}})
    assert recipe.routing.signals is not None
    used = (recipe.routing.signals.domains or [])[:1]  # those that something uses
    calls = ScriptedCalls(decisions=chosen({"code": 0.1, "law": 0.8, "other": 0.1}))
    found = observe(list(KIND_OF_TYPE["domain"].compile(used, recipe)), calls, "may I?")
    assert found["code"].truth is Truth.FALSE
    _, deployment, (question, state) = calls.calls[0]
    assert (deployment, state) == ("judge", "may I?")
    assert [choice["key"] for choice in question["choices"]] == ["code", "law", "other"]
    assert calls.full == [False]


def test_thresholds_belong_to_the_model_that_answers() -> None:
    probabilities = {"code": 0.3, "law": 0.25, "other": 0.2, "none": 0.25}
    for artifact, truth in (("vllm-sr/Vela-2.0-0.3B", Truth.TRUE), ("somebody/else", Truth.FALSE)):
        catalog = {"deployments": {"primary": {"artifact": artifact, "provider": "model_runtime"}}}
        assert observed("domain", DOMAINS, ScriptedCalls(decisions=chosen(probabilities)), "x", catalog=catalog)["code"].truth is truth


@pytest.mark.parametrize(("reason", "code"), [("timeout", "classifier_timeout"), ("failed", "classifier_evaluation_failed"), ("unavailable", "classifier_unavailable")])
def test_a_head_that_does_not_answer_is_unknown_with_a_bounded_code(reason: str, code: str) -> None:
    found = observed("domain", DOMAINS, ScriptedCalls(heads=lambda text: Unanswered(reason)), "x", catalog=bound("domain_classifier"))
    assert {(one.truth, one.reason) for one in found.values()} == {(Truth.UNKNOWN, code)}


def test_a_question_that_does_not_answer_is_unknown() -> None:
    found = observed("domain", DOMAINS, ScriptedCalls(decisions=lambda question, state: Unanswered("timeout")), "x")
    assert found["law"].reason == "decision_timeout"


@pytest.mark.parametrize("kind", ["domain", "user_feedback", "modality", "preference", "fact_check", "jailbreak", "pii", "safety", "complexity", "systemone"])
def test_no_model_is_asked_about_nothing(kind: str) -> None:
    rules: dict[str, dict[str, Any]] = {
        "domain": {"name": "law"}, "user_feedback": {"name": "satisfied"}, "modality": {"name": "AR"}, "preference": {"name": "p", "description": "d"},
        "fact_check": {"name": "needs_fact_check"}, "jailbreak": {"name": "j", "threshold": 0.5}, "pii": {"name": "p"},
        "safety": {"name": "s", "threshold": 0.5}, "complexity": {"name": "c"},
        "systemone": {"name": "q", "question": {"type": "noul", "instructions": "?"}},
    }  # fmt: skip
    calls = ScriptedCalls()
    found = observed(kind, [rules[kind]], calls, " \n")
    assert calls.calls == []
    assert {one.truth for one in found.values()} == {Truth.FALSE}


def test_feedback_knows_the_labels_of_other_models() -> None:
    rules = [{"name": "satisfied"}, {"name": "wrong_answer"}]
    calls = ScriptedCalls(heads=lambda text: {"SAT": 0.9, "WRONG_ANSWER": 0.1})
    found = observed("user_feedback", rules, calls, "thank you", catalog=bound("feedback_detector"))
    assert [found[name].truth for name in ("satisfied", "wrong_answer")] == [Truth.TRUE, Truth.FALSE]


@pytest.mark.parametrize(("needs", "truths"), [(0.5, [Truth.TRUE, Truth.FALSE]), (0.49, [Truth.FALSE, Truth.TRUE])])
def test_one_of_the_two_fact_check_rules_matches(needs: float, truths: list[Truth]) -> None:
    rules = [{"name": "needs_fact_check"}, {"name": "no_fact_check_needed"}]
    calls = ScriptedCalls(heads=lambda text: {"FACT_CHECK_NEEDED": needs, "NO_FACT_CHECK_NEEDED": 1 - needs})
    found = observed("fact_check", rules, calls, "who was first?", catalog=bound("fact_check_classifier"))
    assert [found[rule["name"]].truth for rule in rules] == truths
    assert found["no_fact_check_needed"].value == pytest.approx(1 - needs)


@pytest.mark.parametrize(
    ("text", "label"),
    [("Please DRAW a horse", "DIFFUSION"), ("explain photosynthesis with an image", "BOTH"), ("withdraw my order", "AR"), ("what is rain?", "AR")],
)
def test_modality_by_words_needs_no_model(text: str, label: str) -> None:
    rules = [{"name": name} for name in ("AR", "DIFFUSION", "BOTH")]
    calls = ScriptedCalls()
    found = observed("modality", rules, calls, text, catalog={"modules": {"modality_detector": {"method": "keyword"}}})
    assert [name for name, one in found.items() if one.truth is Truth.TRUE] == [label]
    assert calls.calls == []


def test_modality_hybrid_asks_where_no_word_is_found() -> None:
    catalog = bound("modality_detector", modules={"modality_detector": {"method": "hybrid"}})
    calls = ScriptedCalls(heads=lambda text: {"AR": 0.1, "DIFFUSION": 0.9})
    assert observed("modality", [{"name": "DIFFUSION"}], calls, "a red horse, oil on canvas", catalog=catalog)["DIFFUSION"].truth is Truth.TRUE
    assert observed("modality", [{"name": "DIFFUSION"}], calls, "draw it", catalog=catalog)["DIFFUSION"].truth is Truth.TRUE
    assert len(calls.calls) == 1


def test_preferences_by_examples_take_the_nearest_rule() -> None:
    vectors = {"fix bugs": [1.0, 0.0], "write verse": [0.0, 1.0], "my code crashes": [0.9, 0.4]}
    rules = [{"name": "bugs", "description": "fix bugs", "threshold": 0.5}, {"name": "verse", "description": "write verse", "threshold": 0.1}]
    catalog = {**EMBEDDING, "modules": {"classifier": {"preference": {"use_contrastive": True}}}}
    found = observed("preference", rules, ScriptedCalls(vectors=vectors.get), "my code crashes", catalog=catalog)
    assert found["bugs"].truth is Truth.TRUE
    assert (found["verse"].truth, found["verse"].value) == (Truth.FALSE, pytest.approx(0.406, abs=1e-3))  # it would pass its own threshold


def test_a_module_that_is_off_observes_nothing() -> None:
    recipe = recipe_of({"domains": DOMAINS}, {"modules": {"classifier": {"domain": {"enabled": False}}}})
    assert compiled("domain", recipe) == []
