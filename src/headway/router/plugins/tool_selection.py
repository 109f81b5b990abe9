"""tool_selection: the tools that fit a request, added from a database or kept of those that it brings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headway.errors import ConfigError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.stores import Tools as ToolsIntegration
from headway.router.config.document.tool_plugins import AdvancedToolFiltering, ToolFilteringWeights, ToolSelectionPlugin
from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Embedder, Matrix
from headway.router.embedding.source import embedding_deployment
from headway.router.generation.services import Services
from headway.router.plugins.lexical import words
from headway.router.plugins.models import asking, embedded
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.tool_database import KnownTool, known, read_tools
from headway.router.plugins.tool_lists import with_tools
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe
from headway.router.truth import Truth

_MOST_TOOLS = 256  # of a request that are ranked; more are left as they are
_LIKENESS_THRESHOLD = 0.2
_BY_LIKENESS = ("semantic", "semantic_only")
_LIKENESS_ALONE = ToolFilteringWeights(embed=1, lexical=0, tag=0, name=0, category=0)
_WORDS_ALONE = ToolFilteringWeights(embed=0, lexical=0.6, tag=0.1, name=0.3, category=0)


@dataclass(frozen=True, slots=True)
class Settings:
    """`weights` without likeness where nothing makes vectors; `strategy` is the word for them: semantic, weighted, lexical."""

    strategy: str
    adds: bool
    top_k: int
    threshold: float
    preserve: int
    empty_when_unsure: bool
    weights: ToolFilteringWeights
    filtering: AdvancedToolFiltering


class ToolSelection(Plugin):
    """Equal scores go by name. `add` never adds a tool whose name the request already uses. Fitting is no permission: what a caller may use is for
    the plugin tools to say."""

    type = "tool_selection"

    def __init__(self, settings: Settings, database: Sequence[KnownTool], embedder: Embedder | None) -> None:
        self._settings = settings
        self._database = database
        self._embedder = embedder

    def deployments(self) -> frozenset[str]:
        return frozenset((self._embedder.deployment,)) if self._embedder else frozenset()

    async def before(self, context: RequestContext) -> Reply | None:
        query = context.view.user_text
        brought = [tool for tool in context.body.get("tools") or () if isinstance(tool, Mapping)]
        if self._settings.adds:
            taken = {known(tool).name for tool in brought}
            chosen = [tool for tool in await self._chosen(context, query, self._candidates(context, self._database)) if tool.name not in taken]
            if chosen:
                context.body = {**context.body, "tools": [*brought, *(tool.tool for tool in chosen)]}
                context.body.setdefault("tool_choice", "auto")
        elif 0 < len(brought) <= _MOST_TOOLS and query.strip():
            kept = {id(tool.tool) for tool in await self._chosen(context, query, self._candidates(context, [known(tool) for tool in brought]))}
            context.body = with_tools(context.body, [tool for tool in brought if id(tool) in kept])
        return None

    def _candidates(self, context: RequestContext, tools: Sequence[KnownTool]) -> Sequence[KnownTool]:
        rules = self._settings.filtering
        found = [tool for tool in tools if (not rules.allow_tools or tool.name in rules.allow_tools) and tool.name not in rules.block_tools]
        category = _category(context, rules) if rules.use_category_filter else None
        return [tool for tool in found if tool.category.casefold() == category] or found if category else found

    async def _chosen(self, context: RequestContext, query: str, tools: Sequence[KnownTool]) -> Sequence[KnownTool]:
        """In the order of their scores when tools are added, all that fit when they are filtered."""
        settings = self._settings
        if not tools or not query.strip():
            return () if settings.adds else tools
        began = time.perf_counter()
        likeness = await self._likeness(context, query, tools)
        if likeness is None and self._embedder is not None and settings.weights.lexical == 0:
            return () if settings.adds or settings.empty_when_unsure else tools
        scores = self._scores(context, query, tools, likeness)
        self._told(context, max(scores), time.perf_counter() - began)
        order = sorted(range(len(tools)), key=lambda at: (-scores[at], tools[at].name))
        pool = settings.filtering.candidate_pool_size
        fitting = [at for at in (order[:pool] if pool else order) if scores[at] >= settings.threshold and self._overlaps(query, tools[at])]
        if settings.adds:
            return [tools[at] for at in fitting[: settings.top_k]]
        kept = list(dict.fromkeys([*fitting, *order[: settings.preserve]]))[: settings.top_k or None]
        return [tools[at] for at in kept] if kept or settings.empty_when_unsure else tools

    def _told(self, context: RequestContext, best: float, seconds: float) -> None:
        """Callers that may debug see the score of the tool that fits best."""
        strategy = self._settings.strategy
        context.generation.services.metrics.observe("vsr_tools_retrieval_duration_seconds", seconds, strategy)
        if context.debug:
            shown = {"strategy": strategy, "confidence": f"{best:.4f}", "latency-ms": f"{seconds * 1000:.3f}"}
            context.response_headers.update((f"x-vsr-tools-{name}", value) for name, value in shown.items())

    def _scores(self, context: RequestContext, query: str, tools: Sequence[KnownTool], likeness: Sequence[float] | None) -> list[float]:
        asked, category = set(words(query)), _category(context, self._settings.filtering)
        weights = self._settings.weights
        parts = (weights.embed if likeness is not None else 0, weights.lexical, weights.tag, weights.name, weights.category)
        total = sum(parts) or 1.0
        scores = []
        for at, tool in enumerate(tools):
            numbers = (
                max(0.0, likeness[at]) if likeness is not None else 0.0,
                _share(asked, set(words(tool.text))),
                1.0 if asked & {word for tag in tool.tags for word in words(tag)} else 0.0,
                _share(set(words(tool.name.replace("_", " "))), asked),
                1.0 if category and tool.category.casefold() == category else 0.0,
            )
            scores.append(round(sum(weight * number for weight, number in zip(parts, numbers, strict=True)) / total, 6))
        return scores

    def _overlaps(self, query: str, tool: KnownTool) -> bool:
        least = self._settings.filtering.min_lexical_overlap
        return not least or len(set(words(query)) & set(words(tool.text))) >= least

    async def _likeness(self, context: RequestContext, query: str, tools: Sequence[KnownTool]) -> Sequence[float] | None:
        """Cosines; None when nothing makes vectors, or it does not answer."""
        if self._embedder is None or self._settings.weights.embed == 0:
            return None
        with asking(context) as calls:
            if self._settings.adds:
                vectors = await self._embedder.embed(calls, [query])
                if isinstance(vectors, Unanswered):
                    return None
                places = {tool.name: at for at, tool in enumerate(self._database)}
                return _cosines(vectors.queries[0], vectors.candidates[[places[tool.name] for tool in tools]])
            made = await embedded(calls, self._embedder.deployment, [query, *(tool.text for tool in tools)])
        return None if isinstance(made, Unanswered) else _cosines(made.vectors[0], made.vectors[1:])


def _cosines(query: np.ndarray, rows: Matrix) -> list[float]:
    return [float(number) for number in rows @ query]


def _share(part: set[str], whole: set[str]) -> float:
    return len(part & whole) / len(part) if part else 0.0


def _category(context: RequestContext, rules: AdvancedToolFiltering) -> str | None:
    found = [each for each in context.observations if each.kind == "domain" and each.truth is Truth.TRUE]
    best = max(found, key=lambda each: each.confidence or 0.0, default=None)
    return best.name.casefold() if best and (best.confidence or 0.0) >= rules.category_confidence_threshold else None


def compile_tool_selection(configuration: ToolSelectionPlugin, decision: Decision, recipe: Recipe, services: Services) -> ToolSelection | None:
    """Raises ConfigError for `add` without a database, and for one that cannot be read."""
    if not configuration.enabled:
        return None
    integrations = recipe.document.global_.integrations if recipe.document.global_ else None
    defaults = (integrations.tools if integrations else None) or ToolsIntegration()
    path = configuration.tools_db_path or (defaults.tools_db_path if defaults.enabled else None)
    adds = configuration.mode == "add"
    if adds and not path:
        raise ConfigError(
            f'decision "{decision.name}" adds tools, and there is no database of them',
            param="tools_db_path",
            fix="Set tools_db_path in the plugin, or in global.integrations.tools with enabled: true.",
        )
    database = read_tools(recipe.document.place(path)) if adds and path else ()
    filtering = configuration.advanced_filtering or defaults.advanced_filtering or AdvancedToolFiltering()
    deployment = embedding_deployment(recipe)
    weighs = configuration.strategy == "weighted" or (filtering.enabled and configuration.strategy not in _BY_LIKENESS)
    weights = filtering.weights if weighs else _LIKENESS_ALONE if deployment else _WORDS_ALONE
    embedder = Embedder(deployment, recipe.vectors, [tool.text for tool in database]) if deployment else None
    return ToolSelection(_settings(configuration, defaults, filtering, weights), database, embedder)


def _settings(
    configuration: ToolSelectionPlugin, defaults: ToolsIntegration, filtering: AdvancedToolFiltering, weights: ToolFilteringWeights
) -> Settings:
    adds = configuration.mode == "add"
    own = configuration.similarity_threshold if adds else configuration.relevance_threshold
    shared = defaults.similarity_threshold if own is None else own
    usual = filtering.min_combined_score if filtering.enabled else _LIKENESS_THRESHOLD
    return Settings(
        strategy="semantic" if weights is _LIKENESS_ALONE else "lexical" if weights is _WORDS_ALONE else "weighted",
        adds=adds,
        top_k=configuration.top_k if configuration.top_k is not None else defaults.top_k if adds else 0,
        threshold=usual if shared is None else shared,
        preserve=configuration.preserve_count,
        empty_when_unsure=defaults.fallback_to_empty if configuration.fallback_to_empty is None else configuration.fallback_to_empty,
        weights=weights,
        filtering=filtering,
    )
