"""reask: the user asks again what was asked before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.model_signals import ReaskRule
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.source import embedding_deployment
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking import questions, reasons
from headway.router.signals.asking.answerer import binding_of, decision_model
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind
from headway.router.truth import Truth


def _turns(view: RequestView, rule: ReaskRule) -> list[str] | None:
    """The user turns that a rule reads, oldest first; None when there are not as many."""
    turns = [text for text in view.user_texts if text.strip()]
    return turns[-rule.lookback_turns - 1 :] if view.user_text.strip() and len(turns) > rule.lookback_turns else None


@dataclass(frozen=True, slots=True)
class ReaskByLikeness:
    """A rule matches when the latest turn is as near as its threshold to each of the turns before it. Its value is the lowest cosine."""

    rules: Sequence[ReaskRule]
    embedder: Embedder

    def deployments(self) -> frozenset[str]:
        return frozenset((self.embedder.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        read = {rule.name: _turns(view, rule) for rule in self.rules}
        longest: list[str] = max((turns for turns in read.values() if turns), key=len, default=[])
        if not longest:
            return reasons.nothing_to_read("reask", read)
        vectors = await self.embedder.embed(calls, longest)
        if isinstance(vectors, Unanswered):
            return reasons.unknown("reask", read, reasons.VECTORS, vectors)
        cosines = vectors.queries[:-1] @ vectors.queries[-1]
        return [self._judged(rule, read[rule.name], cosines) for rule in self.rules]

    def _judged(self, rule: ReaskRule, turns: list[str] | None, cosines: Any) -> Observation:
        if not turns:
            return Observation("reask", rule.name, Truth.FALSE)
        value = float(cosines[-rule.lookback_turns :].min())
        matched = value >= rule.threshold
        return Observation("reask", rule.name, Truth.of(matched), max(0.0, value) if matched else None, value)


@dataclass(frozen=True, slots=True)
class ReaskByQuestion:
    """Where nothing makes vectors, or `bindings.reask` names a decision model: it reads the turns."""

    rules: Sequence[ReaskRule]
    deployment: str

    def deployments(self) -> frozenset[str]:
        return frozenset((self.deployment,))

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        return await asyncio.gather(*(self._observed(rule, _turns(view, rule), calls) for rule in self.rules))

    async def _observed(self, rule: ReaskRule, turns: list[str] | None, calls: StageCalls) -> Observation:
        if turns is None:
            return Observation("reask", rule.name, Truth.FALSE)
        state = {"earlier": turns[:-1], "latest": turns[-1]}
        answer = await calls.decide(self.deployment, questions.REASK, state, full=True)
        if not isinstance(answer, Answered):
            return reasons.unknown("reask", (rule.name,), reasons.QUESTION, answer)[0]
        value = float(answer.value["noul"])
        matched = value >= rule.threshold
        return Observation("reask", rule.name, Truth.of(matched), value if matched else None, value)


def compile_reasks(rules: Sequence[ReaskRule], recipe: Recipe) -> Sequence[ModelSignal]:
    binding, vectors = binding_of(recipe, "reask"), embedding_deployment(recipe)
    if binding is None and vectors is not None:
        return (ReaskByLikeness(rules, Embedder(vectors, recipe.vectors)),)
    return (ReaskByQuestion(rules, binding.deployment if binding else decision_model(recipe)),)


REASK = SignalKind("reask", "reasks", "reask", compile_reasks, scale="similarity")
