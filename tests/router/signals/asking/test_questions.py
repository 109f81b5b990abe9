"""systemone, safety and classifier."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from headway.errors import ConfigError
from headway.router.deployments.calls import Unanswered
from headway.router.observation import Observation
from headway.router.truth import Truth
from tests.router.scripted_calls import ScriptedCalls
from tests.router.signals.asking.observing import compiled, observed, recipe_of

OPTIONS = [{"key": "a", "description": "the first"}, {"key": "b"}]
QUESTIONS: dict[str, dict[str, Any]] = {
    "noul": {"type": "noul", "instructions": "?"},
    "choice": {"type": "choice", "instructions": "?", "choices": OPTIONS},
    "score": {"type": "score", "instructions": "?", "levels": ["low", "high"]},
    "set": {"type": "set", "instructions": "?", "labels": OPTIONS, "threshold": 0.4},
    "span": {"type": "span", "instructions": "?", "labels": OPTIONS, "head": "router"},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "noul": {"type": "noul", "noul": 0.6},
    "choice": {"type": "choice", "choice": "a", "probabilities": {"a": 0.7, "b": 0.3}},
    "score": {"type": "score", "score": 0.8, "probabilities": {"0": 0.2, "1": 0.8}},
    "set": {"type": "set", "probabilities": {"a": 0.45, "b": 0.1}, "selected": ["a"]},
    "span": {"type": "span", "spans": [{"label": "b", "start": 0, "end": 1, "text": "x", "probability": 0.55}]},
}


def ask(type: str, calls: ScriptedCalls | None = None, **rule: Any) -> Observation:
    calls = calls or ScriptedCalls(decisions=lambda question, state: ANSWERS[type])
    return observed("systemone", [{"name": "q", "question": QUESTIONS[type], **rule}], calls, "text")["q"]


@pytest.mark.parametrize(("type", "predicate", "truth", "value", "matched"), [
    ("noul", None, Truth.TRUE, 0.6, ()), ("noul", {"gte": 0.6}, Truth.TRUE, 0.6, ()), ("noul", {"gt": 0.6}, Truth.FALSE, 0.6, ()),
    ("noul", {"lt": 0.6}, Truth.FALSE, 0.6, ()), ("noul", {"gte": 0.5, "lte": 0.55}, Truth.FALSE, 0.6, ()),
    ("score", {"gte": 0.8}, Truth.TRUE, 0.8, ()), ("score", {"lte": 0.7}, Truth.FALSE, 0.8, ()),
    ("choice", None, Truth.TRUE, 0.7, ("a",)), ("choice", {"gte": 0.7}, Truth.TRUE, 0.7, ("a",)), ("choice", {"gte": 0.71}, Truth.FALSE, 0.7, ()),
    ("set", None, Truth.TRUE, 0.45, ("a",)), ("set", {"gte": 0.05}, Truth.TRUE, 0.45, ("a", "b")), ("set", {"gte": 0.5}, Truth.FALSE, 0.45, ()),
    ("span", None, Truth.TRUE, 0.55, ("b",)), ("span", {"gte": 0.56}, Truth.FALSE, 0.55, ()),
])  # fmt: skip
def test_what_a_rule_makes_of_an_answer(type: str, predicate: dict[str, float] | None, truth: Truth, value: float, matched: tuple[str, ...]) -> None:
    found = ask(type, predicate=predicate)
    assert (found.truth, found.value, found.matched_labels) == (truth, value, matched)


def test_every_key_has_its_number() -> None:
    assert ask("choice").labels == {"a": 0.7, "b": 0.3}
    assert ask("span").labels == {"a": 0.0, "b": 0.55}


@pytest.mark.parametrize("type", list(QUESTIONS))
def test_the_question_is_asked_as_it_stands(type: str) -> None:
    calls = ScriptedCalls(decisions=lambda question, state: ANSWERS[type])
    ask(type, calls, predicate={"gte": 0.1}, deployment="judge", timeout_ms=250)
    assert calls.calls == [("decide", "judge", (QUESTIONS[type], "text"))]
    assert (calls.full, calls.timeouts) == ([False], [0.25])


def test_no_timeout_of_its_own_by_default() -> None:
    for given in (None, 0):
        calls = ScriptedCalls(decisions=lambda question, state: ANSWERS["noul"])
        ask("noul", calls, timeout_ms=given)
        assert calls.timeouts == [None]


@pytest.mark.parametrize("reason", ["timeout", "unavailable", "overloaded", "missing_answer"])
def test_no_answer_is_unknown(reason: str) -> None:
    for more in ({}, {"coverage": "full"}):
        found = ask("noul", ScriptedCalls(decisions=lambda question, state: Unanswered(reason)), **more)
        assert (found.truth, found.reason) == (Truth.UNKNOWN, f"decision_{reason}")


@pytest.mark.parametrize("answer", [Unanswered("input_limit"), Unanswered("scan_budget"), "truncated"])
@pytest.mark.parametrize(("policy", "truth"), [(None, Truth.TRUE), ("match", Truth.TRUE), ("no_match", Truth.FALSE), ("unknown", Truth.UNKNOWN)])
def test_full_coverage_says_what_unread_content_is(answer: Any, policy: str | None, truth: Truth) -> None:
    calls = ScriptedCalls(decisions=lambda question, state: ANSWERS["set"] if answer == "truncated" else answer, read_all=answer != "truncated")
    found = ask("set", calls, coverage="full", on_unscanned=policy)
    reason = "input_limit" if answer == "truncated" else answer.reason
    assert (found.truth, found.reason) == (truth, f"unscanned_{reason}")
    assert found.matched_labels == (("a", "b", "unscanned") if truth is Truth.TRUE else ())
    assert calls.full == [True]


def test_what_was_not_read_for_want_of_time_is_no_answer() -> None:
    found = ask("noul", ScriptedCalls(decisions=lambda question, state: Unanswered("deadline")), coverage="full")
    assert (found.truth, found.reason) == (Truth.UNKNOWN, "decision_timeout")


def test_without_full_coverage_the_beginning_is_enough() -> None:
    assert ask("noul", ScriptedCalls(decisions=lambda question, state: ANSWERS["noul"], read_all=False)).truth is Truth.TRUE
    assert ask("noul", ScriptedCalls(decisions=lambda question, state: Unanswered("input_limit"))).reason == "decision_input_limit"


@pytest.mark.parametrize("rule", [
    {"question": {"type": "noul", "instructions": " "}}, {"question": {"type": "noul", "instructions": "?", "choices": [{"key": "maybe"}]}},
    {"question": {"type": "choice", "instructions": "?", "choices": [{"key": "a"}]}},
    {"question": {"type": "choice", "instructions": "?", "choices": [{"key": "a"}, {"key": "a"}]}},
    {"question": {"type": "choice", "instructions": "?", "choices": OPTIONS, "levels": ["x", "y"]}},
    {"question": {"type": "choice", "instructions": "?", "choices": OPTIONS, "threshold": 0.5}},
    {"question": {"type": "set", "instructions": "?", "labels": OPTIONS, "head": "broad"}},
    {"question": {"type": "score", "instructions": "?", "levels": ["a", "b"]}},  # without a predicate
    {"question": QUESTIONS["noul"], "on_unscanned": "match"},  # without full coverage
    {"question": QUESTIONS["noul"], "name": "a:b"}, {"question": QUESTIONS["noul"], "timeout_ms": 60001},
])  # fmt: skip
def test_questions_that_cannot_be_asked(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        recipe_of({"systemone": [{"name": "q", **rule}]})


def test_the_older_name_of_the_collection() -> None:
    assert recipe_of({"decision": [{"name": "q", "question": QUESTIONS["noul"]}]}).routing.signals.systemone[0].name == "q"  # type: ignore[index, union-attr]


SAFE = {"bindings": {"safety.s": {"deployment": "guard", "contract": "label_distribution.v1"},
                     "safety.s.hazard": {"deployment": "hazards", "contract": "label_scores.v1"}}}  # fmt: skip
HAZARD = {"labels": ["violence", "fraud"], "categories": ["fraud"], "threshold": 0.5}


def safety_of(**rule: Any) -> tuple[Observation, ScriptedCalls]:
    calls = ScriptedCalls(heads=lambda text: {"safe": 0.2, "unsafe": 0.3, "borderline": 0.5, "violence": 0.9, "fraud": 0.6})
    return observed("safety", [{"name": "s", "threshold": 0.5, **rule}], calls, "text", catalog=SAFE)["s"], calls


def test_probabilities_of_unsafe_labels_are_summed() -> None:
    labels = {"labels": ["safe", "unsafe", "borderline"], "unsafe_labels": ["unsafe", "borderline"]}
    assert (safety_of(**labels)[0].truth, safety_of(**labels)[0].value) == (Truth.TRUE, pytest.approx(0.8))
    assert safety_of()[0].truth is Truth.FALSE


def test_hazards_are_asked_only_after_an_unsafe_verdict() -> None:
    found, calls = safety_of(threshold=0.3, hazard=HAZARD)
    assert (found.truth, found.matched_labels) == (Truth.TRUE, ("fraud",))
    assert [deployment for _, deployment, _ in calls.calls] == ["guard", "hazards"]
    found, calls = safety_of(threshold=0.4, hazard=HAZARD)
    assert (found.truth, [deployment for _, deployment, _ in calls.calls]) == (Truth.FALSE, ["guard"])
    assert safety_of(threshold=0.3, hazard={**HAZARD, "threshold": 0.7})[0].truth is Truth.FALSE


def test_safety_of_an_input_that_was_not_read_in_full_is_unknown() -> None:
    calls = ScriptedCalls(heads=lambda text: {"safe": 0.9, "unsafe": 0.1}, read_all=False)
    found = observed("safety", [{"name": "s", "threshold": 0.5}], calls, "text", catalog=SAFE)["s"]
    assert (found.truth, found.reason) == (Truth.UNKNOWN, "classifier_input_limit")


def test_safety_by_the_decision_model() -> None:
    answers = {"noul": {"type": "noul", "noul": 0.9}, "set": {"type": "set", "probabilities": {"fraud": 0.8, "violence": 0.1}, "selected": ["fraud"]}}
    calls = ScriptedCalls(decisions=lambda question, state: answers[question["type"]])
    found = observed("safety", [{"name": "s", "threshold": 0.5, "hazard": HAZARD}], calls, "text")["s"]
    assert (found.truth, found.value, found.labels) == (Truth.TRUE, 0.9, {"fraud": 0.8})


CLASSIFIER = {"name": "c", "type": "sequence_classifier", "labels": ["refund", "other"]}
BOUND = {"bindings": {"classifier.c": {"deployment": "d", "contract": "label_distribution.v1"}}}


def test_a_classifier_gives_its_labels_to_conditions() -> None:
    calls = ScriptedCalls(heads=lambda text: {"Refund": 0.7, "other": 0.3})
    found = observed("classifier", [CLASSIFIER], calls, "text", catalog=BOUND)["c"]
    assert (found.labels, found.matched_labels) == ({"refund": 0.7, "other": 0.3}, ("refund",))


def test_a_classifier_whose_model_has_other_labels_is_unknown() -> None:
    found = observed("classifier", [CLASSIFIER], ScriptedCalls(heads=lambda text: {"refund": 1.0}), "text", catalog=BOUND)["c"]
    assert (found.truth, found.reason) == (Truth.UNKNOWN, "classifier_invalid_model_output")


def test_a_sequence_classifier_needs_a_binding_and_others_ask() -> None:
    with pytest.raises(ConfigError, match="no deployment is bound"):
        compiled("classifier", recipe_of({"classifiers": [CLASSIFIER]}))
    calls = ScriptedCalls(decisions=lambda question, state: {"type": "choice", "choice": "refund", "probabilities": {"refund": 0.9, "other": 0.1}})
    observed("classifier", [{**CLASSIFIER, "type": "llm", "instructions": "Which?"}], calls, "text")
    assert calls.calls[0][2][0] == {"type": "choice", "instructions": "Which?", "choices": [{"key": "refund"}, {"key": "other"}]}


@pytest.mark.parametrize("rule", [
    {"type": "llm", "labels": ["a"]}, {"type": "local", "labels": ["a"]}, {"type": "local", "labels": ["a", "a"]}, {"type": "local", "labels": ["a", "b:c"]},
    {"type": "sequence_classifier", "labels": ["a", "b"], "instructions": "?"}, {"type": "local", "labels": ["a", "b"], "model": "m"},
])  # fmt: skip
def test_classifiers_that_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        recipe_of({"classifiers": [{"name": "c", **rule}]})
