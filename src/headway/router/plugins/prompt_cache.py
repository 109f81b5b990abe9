"""prompt_cache: markers that let a backend with Anthropic's protocol keep instructions and tools between requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import HeadwayError
from headway.router.config.document.compression_plugin import PromptCachePlugin
from headway.router.config.document.decisions import Decision
from headway.router.generation.services import Services
from headway.router.plugins.instructions import ROLES
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class PromptCacheUnsupportedError(HeadwayError):
    """The chosen model's backend does not know cache markers."""

    reason = "prompt_cache_target_unsupported"


class PromptCache(Plugin):
    """At most two markers: on the last instructions and on the last tool. A client that sets markers of its own keeps them, and gets no others.
    What other backends get is unchanged."""

    type = "prompt_cache"

    def __init__(self, configuration: PromptCachePlugin, models: frozenset[str]) -> None:
        self._configuration = configuration
        self._models = models

    async def before(self, context: RequestContext) -> Reply | None:
        """Raises PromptCacheUnsupportedError when the configuration asks for it."""
        model = context.selection.model if context.selection else None
        action = "inserted"
        if model not in self._models:
            if self._configuration.on_unsupported == "reject":
                raise PromptCacheUnsupportedError(f'the backend of "{model}" does not take cache markers', fix="Set on_unsupported: skip.")
            action = "skipped"
        elif _has_markers(context.body.get("messages")) or _has_markers(context.body.get("tools")):
            action = "preserved"
        else:
            context.body = self._marked(context.body)
        if context.debug:
            context.response_headers["x-vsr-prompt-cache-action"] = action
        return None

    def _marked(self, body: Mapping[str, Any]) -> dict[str, Any]:
        marker = {"type": "ephemeral", **({"ttl": "1h"} if self._configuration.ttl == "1h" else {})}
        changed = dict(body)
        tools = body.get("tools")
        if "tools" in self._configuration.targets and isinstance(tools, list) and tools:
            changed["tools"] = [*tools[:-1], {**tools[-1], "cache_control": marker}]
        messages = body.get("messages")
        if "instructions" in self._configuration.targets and isinstance(messages, list):
            changed["messages"] = _with_marked_instructions(messages, marker)
        return changed


def _with_marked_instructions(messages: Sequence[Any], marker: Mapping[str, str]) -> list[Any]:
    places = [at for at, message in enumerate(messages) if isinstance(message, Mapping) and message.get("role") in ROLES and message.get("content")]
    if not places:
        return list(messages)
    content = messages[places[-1]]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    parts[-1] = {**parts[-1], "cache_control": marker}
    return [*messages[: places[-1]], {**messages[places[-1]], "content": parts}, *messages[places[-1] + 1 :]]


def _has_markers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "cache_control" in value or any(map(_has_markers, value.values()))
    return isinstance(value, list) and any(map(_has_markers, value))


def compile_prompt_cache(configuration: PromptCachePlugin, decision: Decision, recipe: Recipe, services: Services) -> PromptCache | None:
    if not configuration.enabled:
        return None
    providers = recipe.document.providers
    models = (providers.models if providers else None) or ()
    return PromptCache(configuration, frozenset(model.name for model in models if model.api_format == "anthropic"))
