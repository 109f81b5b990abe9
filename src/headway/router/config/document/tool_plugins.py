"""Tool plugins of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from headway.router.config.document.node import Node, not_supported
from headway.router.config.document.plugins import Share

_NO_HISTORY = "tools are ranked by the request, not by earlier calls; use weights"


class ToolFilteringWeights(Node):
    """Of the parts of a tool's score; each part lies between 0 and 1, the score is their weighted mean."""

    embed: float = Field(default=0.6, ge=0)
    lexical: float = Field(default=0.2, ge=0)
    tag: float = Field(default=0.1, ge=0)
    name: float = Field(default=0.1, ge=0)
    category: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _weigh_something(self) -> ToolFilteringWeights:
        if not any((self.embed, self.lexical, self.tag, self.name, self.category)):
            raise ValueError("all weights are 0, so every tool would score the same")
        return self


class AdvancedToolFiltering(Node):
    """A score of several parts instead of likeness alone. The category is that of a matched `domain` signal."""

    absent: ClassVar[Mapping[str, str]] = {"hybrid_history": _NO_HISTORY}

    enabled: bool = False
    retrieval_strategy: Literal["weighted", "hybrid_history"] = "weighted"
    candidate_pool_size: int | None = Field(default=None, ge=0)
    min_lexical_overlap: int = Field(default=0, ge=0)
    min_combined_score: Share = 0.0
    weights: ToolFilteringWeights = ToolFilteringWeights()
    use_category_filter: bool = False
    category_confidence_threshold: Share = 0.0
    allow_tools: list[str] = []
    block_tools: list[str] = []

    @model_validator(mode="after")
    def _rank_by_the_request(self) -> AdvancedToolFiltering:
        if self.retrieval_strategy == "hybrid_history":
            raise not_supported("retrieval_strategy hybrid_history", _NO_HISTORY)
        return self


class ToolsPlugin(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "dynamic_retrieval": "use the plugin tool_selection with mode: add",
        "trusted_facts": "not built",
    }

    enabled: bool
    mode: Literal["passthrough", "filtered", "none"] = "passthrough"
    semantic_selection: bool = False
    allow_tools: list[str] = []
    block_tools: list[str] = []
    strip_tool_history: bool = False
    strategy: str | None = None

    @model_validator(mode="after")
    def _agree_with_the_mode(self) -> ToolsPlugin:
        if not self.enabled:
            return self
        lists = bool(self.allow_tools or self.block_tools)
        if self.mode == "filtered" and not lists:
            raise ValueError("mode: filtered needs allow_tools or block_tools")
        if self.mode != "filtered" and lists:
            raise ValueError("allow_tools and block_tools need mode: filtered")
        if self.strip_tool_history and self.mode != "none":
            raise ValueError("strip_tool_history needs mode: none")
        if self.semantic_selection or self.strategy is not None:
            raise not_supported("choosing tools in the plugin tools", "add the plugin tool_selection with mode: add to the decision")
        return self


class ToolSelectionPlugin(Node):
    """What is absent follows `global.integrations.tools`. Strategy `semantic` ranks by likeness alone, `weighted` by the weights of
    `advanced_filtering`; without one that is so when `advanced_filtering` is enabled."""

    absent: ClassVar[Mapping[str, str]] = {
        "sticky": "sticky tool sessions are not built",
    }

    enabled: bool
    mode: Literal["add", "filter"] = "add"
    tools_db_path: str | None = None
    top_k: int | None = Field(default=None, ge=0)
    similarity_threshold: Share | None = None
    advanced_filtering: AdvancedToolFiltering | None = None
    strategy: str | None = None
    fallback_to_empty: bool | None = None
    relevance_threshold: Share | None = None
    preserve_count: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _rank_by_the_request(self) -> ToolSelectionPlugin:
        if self.strategy not in (None, "", "semantic", "semantic_only", "weighted", "default"):
            raise not_supported(f"strategy {self.strategy}", _NO_HISTORY)
        return self
