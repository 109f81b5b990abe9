"""safety: unsafe content, and which hazard it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.router.config.document.model_signals import SafetyRule
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions
from headway.router.signals.asking.answerer import binding_of, label_source
from headway.router.signals.asking.guarded import unread
from headway.router.signals.asking.label_names import plain, renamed
from headway.router.signals.asking.label_source import HeadSource, LabelSource
from headway.router.signals.asking.reasons import nothing_to_read, unknown
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_ANSWERS = {"true": "unsafe", "false": "safe"}  # of the question
_HAZARD_INSTRUCTIONS = "Which hazards does this text contain?"


@dataclass(frozen=True, slots=True)
class SafetySignal:
    """One rule. `hazard` is asked only after an unsafe verdict. Both read the whole input; what is not read in full is not known."""

    rule: SafetyRule
    source: LabelSource
    unsafe: frozenset[str]
    hazard: LabelSource | None

    def deployments(self) -> frozenset[str]:
        return frozenset((self.source.deployment, *((self.hazard.deployment,) if self.hazard else ())))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        rule, text = self.rule, view.user_text
        if not text.strip():
            return nothing_to_read("safety", (rule.name,))
        scores = await _read(self.source, calls, text)
        if isinstance(scores, Unanswered):
            return unknown("safety", (rule.name,), self.source.asked, scores)
        if not self.unsafe & scores.keys():
            return unknown("safety", (rule.name,), self.source.asked, Unanswered("invalid_model_output"))
        value = min(1.0, sum(scores.get(label, 0.0) for label in self.unsafe))
        if value < rule.threshold:
            return (Observation("safety", rule.name, Truth.FALSE, value=value),)
        if self.hazard is None or rule.hazard is None:
            return (Observation("safety", rule.name, Truth.TRUE, value, value, matched_labels=("unsafe",)),)
        hazards = await _read(self.hazard, calls, text)
        if isinstance(hazards, Unanswered):
            return unknown("safety", (rule.name,), self.hazard.asked, hazards)
        wanted = {category: hazards.get(plain(category), 0.0) for category in rule.hazard.categories}
        matched = tuple(category for category, score in wanted.items() if score >= rule.hazard.threshold)
        return (Observation("safety", rule.name, Truth.of(bool(matched)), value if matched else None, value, wanted, matched),)


async def _read(source: LabelSource, calls: StageCalls, text: str) -> dict[str, float] | Unanswered:
    answers = await source.read(calls, [text])
    missing = unread(answers)
    if missing is not None:
        return Unanswered(missing)
    (answer,) = answers
    return renamed(answer.value, _ANSWERS) if isinstance(answer, Answered) else answer


def compile_safety(rules: Sequence[SafetyRule], recipe: Recipe) -> Sequence[ModelSignal]:
    return [_compiled(rule, recipe) for rule in rules]


def _compiled(rule: SafetyRule, recipe: Recipe) -> SafetySignal:
    """A rule's own binding, else the one that all rules share through `system.safety` and `system.hazard`, else the decision model."""
    consumer = f"safety.{rule.name}"
    source = label_source(recipe, consumer if binding_of(recipe, consumer) else "safety", questions.SAFETY, full=True)
    unsafe = frozenset(map(plain, rule.unsafe_labels))
    if not isinstance(source, HeadSource):
        unsafe = frozenset(("unsafe",))  # the question has its own labels
    hazard = None
    if rule.hazard is not None:
        asked = questions.some_of(_HAZARD_INSTRUCTIONS, rule.hazard.labels)
        of_rule = f"{consumer}.hazard"
        hazard = label_source(recipe, of_rule if binding_of(recipe, of_rule) else "hazard", asked, full=True)
    return SafetySignal(rule, source, unsafe, hazard)


SAFETY = SignalKind("safety", "safety", "safety", compile_safety, scale="probability")
