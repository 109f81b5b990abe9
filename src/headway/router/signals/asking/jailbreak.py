"""jailbreak: attempts to turn an assistant against its instructions, by a classifier, by likeness to known attacks, or by both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.router.config.document.model_signals import JailbreakRule
from headway.router.config.document.modules import PromptGuardModule
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.source import required_embedding
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions, reasons
from headway.router.signals.asking.answerer import label_source
from headway.router.signals.asking.guarded import GuardPolicy, fails_closed, unanswered, unjudged
from headway.router.signals.asking.label_names import by_plain_name, plain
from headway.router.signals.asking.label_source import LabelSource
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth

_ATTACK: Final = ("jailbreak", "injection", "prompt_injection", "malicious", "attack", "unsafe", "true")
Scores = Sequence[Answered[float] | Unanswered]


@dataclass(frozen=True, slots=True)
class JailbreakSignal:
    """All rules that read the same texts: those with the history, or those without. `contrasts` has an embedder for each rule that compares;
    its candidates are the patterns of attacks, then the benign ones."""

    rules: Sequence[JailbreakRule]
    with_history: bool
    source: LabelSource | None
    attack_labels: frozenset[str]
    contrasts: Mapping[str, Embedder]
    policies: Mapping[str, GuardPolicy]

    def deployments(self) -> frozenset[str]:
        asked = {self.source.deployment} if self.source else set()
        return frozenset(asked | {embedder.deployment for embedder in self.contrasts.values()})

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        texts = [text for text in (view.all_texts if self.with_history else (view.user_text,)) if text.strip()]
        if not texts:
            return reasons.nothing_to_read("jailbreak", (rule.name for rule in self.rules))
        classified, *compared = await asyncio.gather(
            self._classified(calls, texts), *(self._compared(rule, calls, texts) for rule in self.rules if rule.name in self.contrasts)
        )
        likeness = dict(zip((rule.name for rule in self.rules if rule.name in self.contrasts), compared, strict=True))
        return [self._judged(rule, classified if rule.method != "contrastive" else (), likeness.get(rule.name, ())) for rule in self.rules]

    async def _classified(self, calls: StageCalls, texts: Sequence[str]) -> Scores:
        if self.source is None:
            return ()
        return [self._attack(answer) for answer in await self.source.read(calls, texts)]

    def _attack(self, answer: Answered[Mapping[str, float]] | Unanswered) -> Answered[float] | Unanswered:
        if isinstance(answer, Unanswered):
            return answer
        scores = by_plain_name(answer.value)
        attacks = [value for label, value in scores.items() if label in self.attack_labels]
        return Answered(sum(attacks), answer.read_all) if attacks else Unanswered("invalid_model_output")

    async def _compared(self, rule: JailbreakRule, calls: StageCalls, texts: Sequence[str]) -> Scores:
        """The nearest attack less the nearest benign pattern, for each text."""
        vectors = await self.contrasts[rule.name].embed(calls, texts)
        if isinstance(vectors, Unanswered):
            return [vectors]
        cosines = vectors.queries @ vectors.candidates.T
        attacks = cosines[:, : len(rule.jailbreak_patterns)].max(axis=1)
        benign = cosines[:, len(rule.jailbreak_patterns) :]
        margins = attacks - benign.max(axis=1) if benign.shape[1] else attacks
        return [Answered(float(margin)) for margin in margins]

    def _judged(self, rule: JailbreakRule, classified: Scores, compared: Scores) -> Observation:
        """The highest number of whatever was answered; a hybrid matches when one of its two ways does."""
        numbers = [answer.value for answer in (*classified, *compared) if isinstance(answer, Answered)]
        value = max(numbers, default=None)
        if value is not None and value >= rule.threshold:
            return Observation("jailbreak", rule.name, Truth.TRUE, min(1.0, value), value, matched_labels=("jailbreak",))
        asked = self.source.asked if self.source and unanswered(classified) is not None else reasons.VECTORS
        found = unjudged("jailbreak", rule.name, asked, (*classified, *compared), self.policies[rule.name])
        return found or Observation("jailbreak", rule.name, Truth.FALSE, value=value)


def compile_jailbreaks(rules: Sequence[JailbreakRule], recipe: Recipe) -> Sequence[ModelSignal]:
    """Rules about responses are the plugin's. Raises ConfigError for a comparison without an embedding model."""
    module = recipe.modules.prompt_guard or PromptGuardModule()
    asked = [rule for rule in rules if rule.direction == "request"] if module.enabled else []
    groups = ([rule for rule in asked if rule.include_history is with_history] for with_history in (False, True))
    return [_compiled(group, module, recipe) for group in groups if group]


def _compiled(rules: Sequence[JailbreakRule], module: PromptGuardModule, recipe: Recipe) -> JailbreakSignal:
    classifies = any(rule.method != "contrastive" for rule in rules)
    source = label_source(recipe, "prompt_guard", questions.JAILBREAK, full=True) if classifies else None
    contrasts = {
        rule.name: Embedder(
            required_embedding(recipe, f'jailbreak rule "{rule.name}"'), recipe.vectors, [*rule.jailbreak_patterns, *rule.benign_patterns]
        )
        for rule in rules
        if rule.method != "classifier"
    }
    labels = frozenset(map(plain, module.positive_labels or _ATTACK)) | {"true"}
    policies = {rule.name: GuardPolicy.of(rule.on_unknown, module.on_error, module.on_unscanned) for rule in rules}
    return JailbreakSignal(rules, rules[0].include_history, source, labels, contrasts, policies)


JAILBREAK = SignalKind(
    "jailbreak",
    "jailbreak",
    "jailbreak",
    compile_jailbreaks,
    scale="probability",
    unanswered=lambda rule, reason: fails_closed("jailbreak", rule.name, rule.on_unknown, reason),
)
