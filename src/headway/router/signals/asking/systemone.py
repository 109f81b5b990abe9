"""systemone: questions of one's own to a decision model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.numeric_range import NumericPredicate
from headway.router.config.document.system_one_signals import SystemOneQuestion, SystemOneRule
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.observation import UNSCANNED, Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking.answerer import decision_model
from headway.router.signals.asking.guarded import unread
from headway.router.signals.asking.label_source import labels_of
from headway.router.signals.asking.reasons import QUESTION, nothing_to_read, unknown
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_YES = NumericPredicate(gte=0.5)
_WITH_OPTIONS = ("choice", "set", "span")


@dataclass(frozen=True, slots=True)
class SystemOneSignal:
    """One rule. Its observation has, by the type of the question:

    noul: `value` P(yes); score: `value` the expected level; both are TRUE when the rule's predicate holds.
    choice: `labels` P(key), `matched_labels` the chosen key, if the predicate holds for its P, `value` its P.
    set: `labels` P(label), `matched_labels` those for which the predicate holds, or else the model's selection, `value` the highest P.
    span: `labels` the highest P of a span with the label, `matched_labels` those for which the predicate holds, or else all that were found.
    """

    rule: SystemOneRule
    deployment: str
    question: Mapping[str, Any]

    def deployments(self) -> frozenset[str]:
        return frozenset((self.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        rule = self.rule
        if not view.user_text.strip():
            return nothing_to_read("systemone", (rule.name,))
        full, timeout = rule.coverage == "full", rule.timeout_ms / 1000 if rule.timeout_ms else None
        answer = await calls.decide(self.deployment, self.question, view.user_text, timeout=timeout, full=full)
        missing = unread([answer]) if full else None
        if missing is not None and missing != "deadline":  # what was not read for want of time is no answer
            return (self._unscanned(missing),)
        if isinstance(answer, Unanswered):
            return unknown("systemone", (rule.name,), QUESTION, answer)
        return (self._judged(answer),)

    def _unscanned(self, missing: str) -> Observation:
        """What content that was not read counts as. A match is one for every label."""
        rule, reason = self.rule, f"{UNSCANNED}_{missing}"
        if rule.on_unscanned == "unknown":
            return Observation("systemone", rule.name, Truth.UNKNOWN, reason=reason)
        matches = rule.on_unscanned != "no_match"
        labels = (*rule.question.keys, UNSCANNED) if matches else ()
        return Observation("systemone", rule.name, Truth.of(matches), matched_labels=labels, reason=reason, evidence={"type": UNSCANNED})

    def _judged(self, answer: Answered[Mapping[str, Any]]) -> Observation:
        rule, given = self.rule, answer.value
        if rule.question.type not in _WITH_OPTIONS:
            value = float(given["noul"] if rule.question.type == "noul" else given["score"])
            matched = (rule.predicate or _YES).holds(value)
            confidence = value if matched and rule.question.type == "noul" else None
            levels = labels_of(given) if rule.question.type == "score" else {}
            return Observation("systemone", rule.name, Truth.of(matched), confidence, value, levels)
        labels = span_labels(given, rule.question.keys) if rule.question.type == "span" else labels_of(given)
        matched_labels = self._matched(given, labels)
        shown = labels[given["choice"]] if rule.question.type == "choice" else max(labels.values(), default=0.0)
        confidence = max((labels[label] for label in matched_labels), default=None)
        return Observation("systemone", rule.name, Truth.of(bool(matched_labels)), confidence, shown, labels, matched_labels)

    def _matched(self, given: Mapping[str, Any], labels: Mapping[str, float]) -> tuple[str, ...]:
        predicate = self.rule.predicate
        if self.rule.question.type == "choice":
            chosen = given["choice"]
            return (chosen,) if predicate is None or predicate.holds(labels[chosen]) else ()
        if predicate is not None:
            return tuple(label for label, value in labels.items() if predicate.holds(value))
        if self.rule.question.type == "set":
            return tuple(label for label in labels if label in given["selected"])
        return tuple(label for label in labels if any(span["label"] == label for span in given["spans"]))


def span_labels(answer: Mapping[str, Any], keys: Sequence[str]) -> dict[str, float]:
    """The highest probability of a span of each label, 0 where there is none."""
    found = dict.fromkeys(keys, 0.0)
    for span in answer["spans"]:
        found[span["label"]] = max(float(span["probability"]), found[span["label"]])
    return found


def on_the_wire(question: SystemOneQuestion) -> dict[str, Any]:
    """The question as `/v1/decisions` takes it."""
    return question.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def compile_systemone(rules: Sequence[SystemOneRule], recipe: Recipe) -> Sequence[ModelSignal]:
    return [SystemOneSignal(rule, rule.deployment or decision_model(recipe), on_the_wire(rule.question)) for rule in rules]


def _labels(rule: SystemOneRule) -> tuple[str, ...] | None:
    return tuple(rule.question.keys) if rule.question.type in _WITH_OPTIONS else None


SYSTEMONE = SignalKind("systemone", "systemone", "systemone", compile_systemone, labels=_labels, scale="probability")
