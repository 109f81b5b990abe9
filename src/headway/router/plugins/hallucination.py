"""hallucination: warnings about answers that their sources do not bear out, or that have no source where one is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from headway.errors import ConfigError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.model_signals import FactCheckRule
from headway.router.config.document.plugins import HallucinationPlugin
from headway.router.deployments.calls import Unanswered
from headway.router.generation.services import Services
from headway.router.plugins.answer_text import is_last
from headway.router.plugins.completion import Collected
from headway.router.plugins.grounding import Grounding, Unsupported, grounding_of, sources_of
from headway.router.plugins.models import asking
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.decoding import body_of, chunks_of
from headway.router.request.reply import Reply
from headway.router.request.view import RequestView, text_of
from headway.router.signals.asking.answerer import binding_of
from headway.router.signals.asking.fact_check import compile_fact_checks
from headway.router.signals.kind import ModelSignal, Recipe
from headway.router.truth import Truth

HALLUCINATION, UNVERIFIED = "hallucination", "unverified_factual"
_SENTENCES = {
    HALLUCINATION: "Note: parts of this answer are not borne out by the sources that were given.",
    UNVERIFIED: "Note: this answer states facts that were not checked against a source.",
}
_MOST_DETAILS = 10
Action = Literal["header", "body", "none"]


class Hallucination(Plugin):
    """It advises and never blocks; when the model does not answer there is no warning. A stream passes as it comes except for its last chunk,
    which waits for the judgement: a `body` warning is one more piece of text before it, a `header` warning stands in it."""

    type = "hallucination"

    def __init__(self, grounding: Grounding, fact_check: Sequence[ModelSignal], actions: dict[str, Action], details: bool) -> None:
        self._grounding = grounding
        self._fact_check = fact_check
        self._actions = actions
        self._details = details

    def deployments(self) -> frozenset[str]:
        return frozenset((self._grounding.deployment,)).union(*(signal.deployments() for signal in self._fact_check))

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        if reply.path != "upstream" or reply.status != 200:
            return reply
        if reply.streams:
            reply.chunks, reply.raw_chunks = self._watched(context, chunks_of(reply)), None
            return reply
        body = body_of(reply)
        message = _message(body)
        answer = message.get("content") if message else None
        if message is not None and isinstance(answer, str):
            warning, found = await self._judged(context, answer)
            if warning and self._actions[warning] == "body":
                message["content"] = f"{answer}\n\n{self._sentence(warning, answer, found)}"
        return reply

    async def _watched(self, context: RequestContext, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        collected = Collected()
        async for chunk in chunks:
            collected.add(chunk)
            if is_last(chunk) and collected.complete:
                warning, found = await self._judged(context, collected.text)
                if warning and self._actions[warning] == "body":
                    yield _with_text(chunk, f"\n\n{self._sentence(warning, collected.text, found)}")
                elif warning and self._actions[warning] == "header":
                    chunk = {**chunk, "x_vsr_response_warnings": list(context.warnings)}
            yield chunk

    async def _judged(self, context: RequestContext, answer: str) -> tuple[str | None, Unsupported | None]:
        """The warning that holds, noted in the request's warnings unless its action is `none`."""
        if not answer.strip():
            return None, None
        view = RequestView(context.body)
        sources = sources_of(view.messages, [text_of(message) for message in view.messages])
        with asking(context) as calls:
            if sources:
                found = await self._grounding.check(calls, sources, context.view.user_text, answer)
                warning = HALLUCINATION if isinstance(found, Unsupported) else None
                result = "unjudged" if isinstance(found, Unanswered) else "flagged" if warning else "passed"
            else:
                found = None
                observed = [each for signal in self._fact_check for each in await signal.observe(context.view, calls)]
                warning = UNVERIFIED if any(each.truth is Truth.TRUE for each in observed) else None
                result = "unjudged" if any(each.truth is Truth.UNKNOWN for each in observed) else "unverified" if warning else "passed"
        context.generation.services.metrics.count("headway_response_guard", HALLUCINATION, result)
        if warning and self._actions[warning] != "none":
            context.warnings.append(warning)
        return warning, found if isinstance(found, Unsupported) else None

    def _sentence(self, warning: str, answer: str, found: Unsupported | None) -> str:
        spans = found.spans[:_MOST_DETAILS] if found and self._details else ()
        return "\n".join([_SENTENCES[warning], *(f"- {answer[start:end].strip()}" for start, end, _ in spans)])


def _message(body: dict[str, Any]) -> dict[str, Any] | None:
    """Of the first choice."""
    choices = body.get("choices")
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    return message if isinstance(message, dict) else None


def _with_text(chunk: dict[str, Any], text: str) -> dict[str, Any]:
    index = chunk["choices"][0].get("index", 0)
    return {**chunk, "choices": [{"index": index, "delta": {"content": text}, "finish_reason": None, "logprobs": None}]}


def compile_hallucination(configuration: HallucinationPlugin, decision: Decision, recipe: Recipe, services: Services) -> Hallucination | None:
    """Raises ConfigError when the module hallucination_mitigation is switched off."""
    if not configuration.enabled:
        return None
    mitigation = recipe.modules.hallucination_mitigation
    if mitigation is not None and not mitigation.enabled:
        raise ConfigError(
            f'decision "{decision.name}" checks its answers, and the module that does so is switched off',
            param="global.model_catalog.modules.hallucination_mitigation.enabled",
            fix="Switch it on, or take the plugin hallucination out.",
        )
    actions: dict[str, Action] = {HALLUCINATION: configuration.hallucination_action, UNVERIFIED: configuration.unverified_factual_action}
    facts = compile_fact_checks([FactCheckRule(name="needs_fact_check")], recipe) if actions[UNVERIFIED] != "none" and _asks_for_facts(recipe) else ()
    return Hallucination(grounding_of(recipe), facts, actions, configuration.include_hallucination_details)


def _asks_for_facts(recipe: Recipe) -> bool:
    """Whether there is a model to ask: one that is bound, or the decision model if something asks it anyway. Nobody's model is started for a default."""
    declared = recipe.routing.signals.fact_check if recipe.routing.signals else None
    return bool(declared) or binding_of(recipe, "fact_check_classifier") is not None or binding_of(recipe, "hallucination_detector") is None
