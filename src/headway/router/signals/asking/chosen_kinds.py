"""The signals of which a model chooses one: domain, user_feedback, modality, preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headway.router.config.document.model_signals import DomainRule, ModalityRule, PreferenceRule, UserFeedbackRule
from headway.router.config.document.modules import FeedbackDetectorModule, ModalityDetector
from headway.router.signals.asking import questions
from headway.router.signals.asking.answerer import label_source
from headway.router.signals.asking.exclusive import ExclusiveSignal, LabelRule
from headway.router.signals.asking.label_names import plain
from headway.router.signals.asking.modality_words import ModalitySignal
from headway.router.signals.asking.preference_examples import PreferenceExamples
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind

_DOMAIN_INSTRUCTIONS: Final = "Which subject is this message about?"
_PREFERENCE_INSTRUCTIONS: Final = "Which of these does this message ask for?"
_FEEDBACK_LABELS: Final[Mapping[str, str]] = {
    "sat": "satisfied", "positive": "satisfied", "clarification": "need_clarification", "needs_clarification": "need_clarification",
    "dissatisfied": "wrong_answer", "wrong": "wrong_answer", "different": "want_different", "wants_different": "want_different",
}  # fmt: skip
_MODALITY_LABELS: Final[Mapping[str, str]] = {"text": "ar", "image": "diffusion"}


def compile_domains(rules: Sequence[DomainRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """The question offers every domain that is declared, used or not: what is unused must not be mistaken for what is used."""
    classifier = recipe.modules.classifier
    module = classifier.domain if classifier else None
    if module is not None and not module.enabled:
        return ()
    declared = (recipe.routing.signals.domains if recipe.routing.signals else None) or list(rules)
    options = ((rule.name, rule.description or ", ".join(rule.mmlu_categories) or None) for rule in declared)
    source = label_source(recipe, "domain_classifier", questions.one_of(_DOMAIN_INSTRUCTIONS, options))
    threshold = _threshold(module.threshold if module else None, recipe, source.deployment, "domain")
    compiled = [LabelRule(rule.name, frozenset(map(plain, (rule.name, *rule.mmlu_categories))), threshold) for rule in rules]
    return (ExclusiveSignal("domain", source, compiled, fallback=(module.fallback_category or None) if module else None),)


def compile_feedback(rules: Sequence[UserFeedbackRule], recipe: Recipe) -> Sequence[ModelSignal]:
    module = recipe.modules.feedback_detector or FeedbackDetectorModule()
    if not module.enabled:
        return ()
    source = label_source(recipe, "feedback_detector", questions.USER_FEEDBACK)
    threshold = _threshold(module.threshold, recipe, source.deployment, "user_feedback")
    compiled = [LabelRule(rule.name, frozenset((plain(rule.name),)), threshold) for rule in rules]
    return (ExclusiveSignal("user_feedback", source, compiled, _FEEDBACK_LABELS),)


def compile_modality(rules: Sequence[ModalityRule], recipe: Recipe) -> Sequence[ModelSignal]:
    module = recipe.modules.modality_detector or ModalityDetector()
    if not module.enabled:
        return ()
    names = [rule.name for rule in rules]
    asked = None
    if module.method != "keyword":
        source = label_source(recipe, "modality_detector", questions.MODALITY)
        threshold = _threshold(module.confidence_threshold, recipe, source.deployment, "modality")
        asked = ExclusiveSignal("modality", source, [LabelRule(name, frozenset((plain(name),)), threshold) for name in names], _MODALITY_LABELS)
    return (asked,) if module.method == "classifier" and asked else (ModalitySignal(names, module, asked),)


def compile_preferences(rules: Sequence[PreferenceRule], recipe: Recipe) -> Sequence[ModelSignal]:
    classifier = recipe.modules.classifier
    module = classifier.preference if classifier else None
    if module is not None and module.use_contrastive:
        return (PreferenceExamples.compiled(rules, recipe, module.prototype_scoring),)
    declared = (recipe.routing.signals.preferences if recipe.routing.signals else None) or list(rules)
    options = ((rule.name, "; for example: ".join([rule.description, *(rule.examples[:1])])) for rule in declared)
    source = label_source(recipe, "preference", questions.one_of(_PREFERENCE_INSTRUCTIONS, options))
    compiled = [
        LabelRule(rule.name, frozenset((plain(rule.name),)), _threshold(rule.threshold, recipe, source.deployment, "preference")) for rule in rules
    ]
    return (ExclusiveSignal("preference", source, compiled),)


def _threshold(stated: float | None, recipe: Recipe, deployment: str, task: str) -> float:
    return stated if stated is not None else default_threshold(recipe, deployment, task)


DOMAIN = SignalKind("domain", "domains", "domains", compile_domains, scale="probability")
USER_FEEDBACK = SignalKind("user_feedback", "user_feedbacks", "user_feedback", compile_feedback, scale="probability")
MODALITY = SignalKind("modality", "modality", "modality", compile_modality, scale="probability")
PREFERENCE = SignalKind("preference", "preferences", "preferences", compile_preferences, scale="probability")
