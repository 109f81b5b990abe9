"""tools: which of the request's tools a route lets a model have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.router.config.document.decisions import Decision
from headway.router.config.document.tool_plugins import ToolsPlugin
from headway.router.generation.services import Services
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.tool_lists import name_of, with_tools, without_tool_history, without_tools
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class Tools(Plugin):
    """`none` takes all tools out (and, on request, the history of their use); `filtered` keeps those that are allowed and not blocked. Lists hold
    names; a name that ends in `*` stands for all that begin so. Nothing is added here: that is tool_selection's work."""

    type = "tools"

    def __init__(self, configuration: ToolsPlugin) -> None:
        self._configuration = configuration

    async def before(self, context: RequestContext) -> Reply | None:
        if self._configuration.mode == "none":
            context.body = without_tools(context.body)
            if self._configuration.strip_tool_history:
                context.body = without_tool_history(context.body)
            return None
        tools = context.body.get("tools")
        if isinstance(tools, list):
            context.body = with_tools(context.body, [tool for tool in tools if self._allows(tool)])
        return None

    def _allows(self, tool: Any) -> bool:
        name = name_of(tool) if isinstance(tool, Mapping) else ""
        allowed, blocked = self._configuration.allow_tools, self._configuration.block_tools
        return (not allowed or _listed(name, allowed)) and not _listed(name, blocked)


def _listed(name: str, patterns: list[str]) -> bool:
    return any(name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])) for pattern in patterns)


def compile_tools(configuration: ToolsPlugin, decision: Decision, recipe: Recipe, services: Services) -> Tools | None:
    if not configuration.enabled or configuration.mode == "passthrough":
        return None
    return Tools(configuration)
