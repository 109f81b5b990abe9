"""pii: personal data in a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.errors import ConfigError
from headway.router.config.document.model_signals import PIIRule
from headway.router.config.document.modules import PIIModule
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions, reasons
from headway.router.signals.asking.answerer import DECISION_CONTRACTS, binding_of, decision_model
from headway.router.signals.asking.guarded import GuardPolicy, fails_closed, unjudged
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_CONTRACT = "token_spans.v1"
Found = Sequence[Answered[Mapping[str, float]] | Unanswered]
"""For each text the highest score of each type in it."""


@dataclass(frozen=True, slots=True)
class PIISignal:
    """All rules that read the same texts. Without `spans` a decision model is asked which types there are."""

    rules: Sequence[PIIRule]
    deployment: str
    spans: bool
    head: str | None
    thresholds: Mapping[str, float]
    policies: Mapping[str, GuardPolicy]

    def deployments(self) -> frozenset[str]:
        return frozenset((self.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        texts = _texts(self.rules[0], view)
        if not texts:
            return reasons.nothing_to_read("pii", (rule.name for rule in self.rules))
        found = await (self._marked(calls, texts) if self.spans else self._asked(calls, texts))
        return [self._judged(rule, found) for rule in self.rules]

    async def _marked(self, calls: StageCalls, texts: Sequence[str]) -> Found:
        answers = await calls.find_spans(self.deployment, texts, head=self.head)
        return [Answered(_highest((s.label, s.score) for s in a.value), a.read_all) if isinstance(a, Answered) else a for a in answers]

    async def _asked(self, calls: StageCalls, texts: Sequence[str]) -> Found:
        answer = await calls.decide(self.deployment, questions.PII, "\n\n".join(texts), full=True)
        return [Answered(_selected(answer.value), answer.read_all) if isinstance(answer, Answered) else answer]

    def _judged(self, rule: PIIRule, found: Found) -> Observation:
        allowed = {name.casefold() for name in rule.pii_types_allowed}
        scores = _highest((label, score) for answer in found if isinstance(answer, Answered) for label, score in answer.value.items())
        types = {label: score for label, score in scores.items() if label.casefold() not in allowed and score >= self.thresholds[rule.name]}
        if types:
            best = max(types.values())
            return Observation("pii", rule.name, Truth.TRUE, best, best, types, tuple(sorted(types)))
        asked = reasons.HEAD if self.spans else reasons.QUESTION
        return unjudged("pii", rule.name, asked, found, self.policies[rule.name]) or Observation("pii", rule.name, Truth.FALSE, value=0.0)


def _highest(pairs: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for label, score in pairs:
        found[label] = max(score, found.get(label, score))
    return found


def _selected(answer: Mapping[str, Any]) -> dict[str, float]:
    """The labels that the model's own threshold selects."""
    return {label: float(answer["probabilities"][label]) for label in answer["selected"]}


def _texts(rule: PIIRule, view: RequestView) -> list[str]:
    if rule.source == "tool_result":
        texts: Sequence[str] = view.tool_result_texts
    else:
        texts = view.all_texts if rule.include_history else (view.user_text,)
    return [text for text in texts if text.strip()]


def compile_pii(rules: Sequence[PIIRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """Raises ConfigError for a binding to something that marks no spans."""
    classifier = recipe.modules.classifier
    module = (classifier.pii if classifier else None) or PIIModule()
    groups: dict[tuple[str | None, bool], list[PIIRule]] = {}
    for rule in rules if module.enabled else ():
        groups.setdefault((rule.source, rule.include_history), []).append(rule)
    return [_compiled(group, module, recipe) for group in groups.values()]


def _compiled(rules: Sequence[PIIRule], module: PIIModule, recipe: Recipe) -> PIISignal:
    binding = binding_of(recipe, "pii_classifier")
    spans = binding is not None and binding.contract not in DECISION_CONTRACTS
    if binding is not None and spans and binding.contract not in (None, _CONTRACT):
        raise ConfigError(
            f"bindings.pii_classifier: a binding does not match the model: contract {binding.contract} marks no spans",
            param="bindings.pii_classifier.contract",
            fix=f"Use {_CONTRACT}.",
        )
    deployment = binding.deployment if binding else decision_model(recipe)
    otherwise = module.threshold if module.threshold is not None else default_threshold(recipe, deployment, "pii", 0.0)
    thresholds = {rule.name: rule.threshold if rule.threshold is not None else otherwise for rule in rules}
    policies = {rule.name: GuardPolicy.of(rule.on_unknown, module.on_error, module.on_unscanned) for rule in rules}
    return PIISignal(rules, deployment, spans, binding.head if binding else None, thresholds, policies)


PII = SignalKind(
    "pii",
    "pii",
    "pii",
    compile_pii,
    scale="probability",
    unanswered=lambda rule, reason: fails_closed("pii", rule.name, rule.on_unknown, reason),
)
