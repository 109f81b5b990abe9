"""system_prompt: the decision's own instructions, instead of the client's or before them."""

from __future__ import annotations

from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import SystemPromptPlugin
from headway.router.generation.services import Services
from headway.router.plugins import instructions
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class SystemPrompt(Plugin):
    """Everything else of the request stays as it is."""

    type = "system_prompt"

    def __init__(self, text: str, replaces: bool) -> None:
        self._text = text
        self._change = instructions.replaced if replaces else instructions.put_first

    async def before(self, context: RequestContext) -> Reply | None:
        messages = context.body.get("messages")
        if isinstance(messages, list):
            context.body = {**context.body, "messages": self._change(messages, self._text)}
            if context.debug:
                context.response_headers["x-vsr-injected-system-prompt"] = "true"
        return None


def compile_system_prompt(configuration: SystemPromptPlugin, decision: Decision, recipe: Recipe, services: Services) -> SystemPrompt | None:
    if not configuration.enabled or not configuration.system_prompt:
        return None
    return SystemPrompt(configuration.system_prompt, configuration.mode == "replace")
