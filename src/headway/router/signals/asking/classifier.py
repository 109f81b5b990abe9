"""classifier: labels of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import ConfigError
from headway.router.config.document.model_signals import ClassifierSignalRule
from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions
from headway.router.signals.asking.answerer import binding_of, label_source
from headway.router.signals.asking.label_names import by_plain_name, plain
from headway.router.signals.asking.label_source import LabelSource
from headway.router.signals.asking.reasons import nothing_to_read, unknown
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_INSTRUCTIONS = "Which of these describes this message?"


@dataclass(frozen=True, slots=True)
class ClassifierSignal:
    """One rule. Its observation is TRUE when there is an answer: what matches is for conditions to say, by label and predicate."""

    rule: ClassifierSignalRule
    source: LabelSource

    def deployments(self) -> frozenset[str]:
        return frozenset((self.source.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        name = self.rule.name
        if not view.user_text.strip():
            return nothing_to_read("classifier", (name,))
        (answer,) = await self.source.read(calls, [view.user_text])
        if isinstance(answer, Unanswered):
            return unknown("classifier", (name,), self.source.asked, answer)
        scores = by_plain_name(answer.value)
        if any(plain(label) not in scores for label in self.rule.labels):
            return unknown("classifier", (name,), self.source.asked, Unanswered("invalid_model_output"))
        labels = {label: scores[plain(label)] for label in self.rule.labels}
        best = max(labels, key=labels.__getitem__)
        return (Observation("classifier", name, Truth.TRUE, labels[best], labels[best], labels, (best,)),)


def compile_classifiers(rules: Sequence[ClassifierSignalRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """Raises ConfigError for a sequence classifier that nothing is bound to."""
    return [ClassifierSignal(rule, _source(rule, recipe)) for rule in rules]


def _source(rule: ClassifierSignalRule, recipe: Recipe) -> LabelSource:
    consumer = f"classifier.{rule.name}"
    if rule.type == "sequence_classifier" and binding_of(recipe, consumer) is None:
        raise ConfigError(
            f"classifier \"{rule.name}\" is a sequence_classifier and no deployment is bound to it",
            param=f"bindings.{consumer}",
            fix=f"Set model_bindings.{consumer} of the recipe, or global.model_catalog.bindings.{consumer}.",
        )
    instructions = rule.instructions or rule.description or _INSTRUCTIONS
    options = {"type": "choice", "instructions": instructions, "choices": [{"key": label} for label in rule.labels]}
    question = options if len(rule.labels) > 1 else questions.one_of(instructions, [(rule.labels[0], None)])
    return label_source(recipe, consumer, question)


CLASSIFIER = SignalKind(
    "classifier", "classifiers", "classifiers", compile_classifiers, labels=lambda rule: tuple(rule.labels), scale="probability"
)
