"""Every plugin, in running order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from headway.errors import ConfigError
from headway.router.config.document import plugins as documents
from headway.router.config.document.cache_plugin import ResponseCachePlugin
from headway.router.config.document.compression_plugin import ContextCompressionPlugin, PromptCachePlugin
from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import DecisionPlugin
from headway.router.config.document.tool_plugins import ToolSelectionPlugin, ToolsPlugin
from headway.router.plugins.compression.plugin import compile_context_compression
from headway.router.plugins.fast_response import compile_fast_response
from headway.router.plugins.hallucination import compile_hallucination
from headway.router.plugins.header_mutation import compile_header_mutation
from headway.router.plugins.masking import compile_masking
from headway.router.plugins.plugin import Plugin, PluginKind
from headway.router.plugins.prompt_cache import compile_prompt_cache
from headway.router.plugins.rag import compile_rag
from headway.router.plugins.request_params import compile_request_params
from headway.router.plugins.response_cache.plugin import compile_response_cache
from headway.router.plugins.response_jailbreak import compile_response_jailbreak
from headway.router.plugins.router_replay import compile_router_replay
from headway.router.plugins.shadow_dispatch import compile_shadow_dispatch
from headway.router.plugins.system_prompt import compile_system_prompt
from headway.router.plugins.tool_selection import compile_tool_selection
from headway.router.plugins.tools import compile_tools
from headway.router.signals.kind import Recipe

if TYPE_CHECKING:
    from headway.router.generation.services import Services

PLUGINS: tuple[PluginKind, ...] = (
    # Looks at everything that the others do: first before, last after.
    PluginKind("router_replay", documents.RouterReplayPlugin, compile_router_replay),
    # May answer without a backend.
    PluginKind("fast_response", documents.FastResponsePlugin, compile_fast_response),
    PluginKind("response_cache", ResponseCachePlugin, compile_response_cache),
    # Judge answers: after the backend and before the cache keeps them.
    PluginKind("response_jailbreak", documents.ResponseJailbreakPlugin, compile_response_jailbreak),
    PluginKind("hallucination", documents.HallucinationPlugin, compile_hallucination),
    # Change the request. Masking comes after whatever brings text in.
    PluginKind("rag", documents.RAGPlugin, compile_rag),
    PluginKind("tools", ToolsPlugin, compile_tools),
    PluginKind("tool_selection", ToolSelectionPlugin, compile_tool_selection),
    PluginKind("system_prompt", documents.SystemPromptPlugin, compile_system_prompt),
    PluginKind("context_compression", ContextCompressionPlugin, compile_context_compression),
    PluginKind("masking", documents.MaskingPlugin, compile_masking),
    PluginKind("request_params", documents.RequestParamsPlugin, compile_request_params),
    PluginKind("prompt_cache", PromptCachePlugin, compile_prompt_cache),
    PluginKind("header_mutation", documents.HeaderMutationPlugin, compile_header_mutation),
    # Copies what the backend gets.
    PluginKind("shadow_dispatch", documents.ShadowDispatchPlugin, compile_shadow_dispatch),
)

_BY_TYPE = {kind.type: (place, kind) for place, kind in enumerate(PLUGINS)}


def compile_plugins(decision: Decision, recipe: Recipe, services: Services) -> Sequence[Plugin]:
    """A decision's plugins in running order, whatever the order in the document. Raises ConfigError."""
    compiled: list[tuple[int, Plugin]] = []
    for at, entry in enumerate(_with_replay(decision.plugins or ())):
        place, kind = _BY_TYPE[entry.type]
        if any(other.type == entry.type for other in (decision.plugins or ())[:at]):
            raise ConfigError(f'decision "{decision.name}": plugins[{at}]: {entry.type} stands there twice', fix="Merge the two entries.")
        try:
            configuration = kind.configuration.model_validate(entry.configuration)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in ("configuration", *first["loc"]))
            raise ConfigError(f'decision "{decision.name}": plugins[{at}] ({kind.type}): {where}: {first["msg"]}') from error
        plugin = kind.compile(configuration, decision, recipe, services)
        if plugin is not None:
            compiled.append((place, plugin))
    return [plugin for _, plugin in sorted(compiled, key=lambda pair: pair[0])]


def _with_replay(entries: Sequence[DecisionPlugin]) -> Sequence[DecisionPlugin]:
    """`global.services.router_replay` may switch records on for decisions that do not speak of them."""
    if any(entry.type == "router_replay" for entry in entries):
        return entries
    return [*entries, DecisionPlugin(type="router_replay", configuration={})]
