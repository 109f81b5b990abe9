"""response_jailbreak: an answer that shows an assistant turned against its instructions does not reach the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.model_signals import JailbreakRule
from headway.router.config.document.modules import PromptGuardModule
from headway.router.config.document.plugins import ResponseJailbreakPlugin
from headway.router.generation.services import Services
from headway.router.plugins.answer_text import held, is_last, text_of_body, text_of_reply
from headway.router.plugins.completion import Collected
from headway.router.plugins.models import asking
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.decoding import chunks_of
from headway.router.request.reply import Reply
from headway.router.request.view import RequestView
from headway.router.signals.asking.answerer import binding_of, decision_model
from headway.router.signals.asking.jailbreak import compile_jailbreaks
from headway.router.signals.asking.thresholds import default_threshold
from headway.router.signals.kind import ModelSignal, Recipe
from headway.router.truth import Truth
from headway.wire.errors import error_body, shape_of

WARNING = "response_jailbreak"


class BlockedResponseError(HeadwayError):
    """The answer was held back."""

    reason = "response_blocked"


class ResponseJailbreak(Plugin):
    """With `block` a stream is held until its end, since what was sent cannot be taken back; an answer that nobody could judge is blocked too
    (unless the module prompt_guard says `on_error: allow`). With `header` and `none` a stream passes as it comes: the judgement then stands
    in its last chunk (`header`) and in the metrics."""

    type = "response_jailbreak"
    fails_closed = True

    def __init__(self, signals: Sequence[ModelSignal], action: Literal["block", "header", "none"]) -> None:
        self._signals = signals
        self._action = action

    def deployments(self) -> frozenset[str]:
        return frozenset().union(*(signal.deployments() for signal in self._signals))

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        if reply.path != "upstream" or reply.status != 200:
            return reply
        if reply.streams and self._action != "block":
            reply.chunks, reply.raw_chunks = self._watched(context, chunks_of(reply)), None
            return reply
        text, reply = await held(reply) if reply.streams else (text_of_reply(reply), reply)
        if await self._is_bad(context, text):
            if self._action == "block":
                blocked = BlockedResponseError("the model's answer was held back by a guard", fix="Ask in another way.")
                return Reply(status=shape_of(blocked).status, path="blocked", body=dict(error_body(blocked)))
            if self._action == "header":
                context.warnings.append(WARNING)
        return reply

    async def _watched(self, context: RequestContext, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        collected = Collected()
        async for chunk in chunks:
            collected.add(chunk)
            if is_last(chunk) and collected.complete and await self._is_bad(context, text_of_body(collected.body())) and self._action == "header":
                context.warnings.append(WARNING)
                chunk = {**chunk, "x_vsr_response_warnings": list(context.warnings)}
            yield chunk

    async def _is_bad(self, context: RequestContext, text: str) -> bool:
        if not text.strip():
            return False
        view = RequestView({"messages": [{"role": "user", "content": text}]})
        with asking(context) as calls:
            found = [each for signal in self._signals for each in await signal.observe(view, calls)]
        bad = next((each for each in found if each.truth is Truth.TRUE), None)
        result = "passed" if bad is None else "unjudged" if bad.reason else "flagged"
        context.generation.services.metrics.count("headway_response_guard", WARNING, result)
        return bad is not None


def compile_response_jailbreak(
    configuration: ResponseJailbreakPlugin, decision: Decision, recipe: Recipe, services: Services
) -> ResponseJailbreak | None:
    """The models are those of the signal `jailbreak`; its rules with `direction: response` hold here, else one of the configured threshold does.
    Raises ConfigError when the module prompt_guard is switched off."""
    if not configuration.enabled:
        return None
    signals = compile_jailbreaks(_rules(configuration, recipe), recipe)
    if not signals:
        raise ConfigError(
            f'decision "{decision.name}" guards its answers, and the module that does so is switched off',
            param="global.model_catalog.modules.prompt_guard.enabled",
            fix="Switch it on, or take the plugin response_jailbreak out.",
        )
    return ResponseJailbreak(signals, configuration.action)


def _rules(configuration: ResponseJailbreakPlugin, recipe: Recipe) -> list[JailbreakRule]:
    declared = (recipe.routing.signals.jailbreak if recipe.routing.signals else None) or ()
    rules = [rule.model_copy(update={"direction": "request", "include_history": False}) for rule in declared if rule.direction == "response"]
    if rules:
        return rules if configuration.threshold is None else [rule.model_copy(update={"threshold": configuration.threshold}) for rule in rules]
    module = recipe.modules.prompt_guard or PromptGuardModule()
    bound = binding_of(recipe, "prompt_guard")
    stated = configuration.threshold if configuration.threshold is not None else module.threshold
    threshold = stated if stated is not None else default_threshold(recipe, bound.deployment if bound else decision_model(recipe), "jailbreak")
    return [JailbreakRule(name=WARNING, threshold=threshold)]
