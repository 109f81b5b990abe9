"""request_params: what a route allows of the request's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import RequestParamsPlugin
from headway.router.generation.services import Services
from headway.router.metrics.registry import RouterMetrics
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe

KNOWN_PARAMETERS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""Of chat completions in OpenAI's API."""

_LIMITS = ("max_tokens", "max_completion_tokens")


class RequestParams(Plugin):
    """Blocked and unknown fields are taken out, numbers that are too large are brought down to their limit; nothing is refused."""

    type = "request_params"

    def __init__(self, configuration: RequestParamsPlugin, written: Mapping[str, int], decision: str, metrics: RouterMetrics) -> None:
        self._configuration = configuration
        self._written = written
        self._decision, self._metrics = decision, metrics

    async def before(self, context: RequestContext) -> Reply | None:
        settings, body = self._configuration, dict(context.body)
        for name in settings.blocked_params:
            if body.pop(name, None) is not None:
                self._metrics.count("sr_request_params_blocked", self._decision, name)
        if settings.strip_unknown:
            known = {name: value for name, value in body.items() if name in KNOWN_PARAMETERS}
            if len(known) < len(body):
                self._metrics.count("sr_request_params_unknown_field_stripped", self._decision, by=len(body) - len(known))
            body = known
        if settings.max_n is not None and _is_count(body.get("n")) and body["n"] > settings.max_n:
            body["n"] = settings.max_n
            self._metrics.count("sr_request_params_max_n_capped", self._decision)
        default = self._default(context)
        if default is not None and all(body.get(name) is None for name in _LIMITS):
            body["max_tokens"] = default
        if settings.max_tokens_limit is not None:
            self._cap(body, settings.max_tokens_limit)
        context.body = body
        return None

    def _default(self, context: RequestContext) -> int | None:
        default = self._configuration.default_max_tokens
        if default != "auto":
            return default
        return self._written.get(context.selection.model or "") if context.selection else None

    def _cap(self, body: dict[str, Any], limit: int) -> None:
        """A request without a limit of its own gets this one: otherwise it could write more than the route allows."""
        said = [name for name in _LIMITS if _is_count(body.get(name))]
        if any(body[name] > limit for name in said):
            self._metrics.count("sr_request_params_max_tokens_capped", self._decision)
        for name in said:
            body[name] = min(body[name], limit)
        if not said:
            body["max_tokens"] = limit


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def compile_request_params(configuration: RequestParamsPlugin, decision: Decision, recipe: Recipe, services: Services) -> RequestParams:
    routing = recipe.document.routing
    cards = (routing.modelCards if routing else None) or ()
    written = {card.name: card.max_output_tokens for card in cards if card.name and card.max_output_tokens}
    return RequestParams(configuration, written, decision.name or "", services.metrics)
