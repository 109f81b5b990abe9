"""Tool plugins of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from headway.router.config.document.node import Node


class ToolFilteringWeights(Node):
    embed: float | None = None
    lexical: float | None = None
    tag: float | None = None
    name: float | None = None
    category: float | None = None


class HybridHistoryToolRetrieval(Node):
    history_horizon: int | None = None
    min_history_steps: int | None = None
    history_confidence_threshold: float | None = None
    weight_semantic: float | None = None
    weight_history_transition: float | None = None
    weight_decision_prior: float | None = None
    repetition_penalty_strength: float | None = None


class AdvancedToolFiltering(Node):
    enabled: bool | None = None
    retrieval_strategy: str | None = None
    candidate_pool_size: int | None = None
    min_lexical_overlap: int | None = None
    min_combined_score: float | None = None
    weights: ToolFilteringWeights | None = None
    use_category_filter: bool | None = None
    category_confidence_threshold: float | None = None
    allow_tools: list[str] | None = None
    block_tools: list[str] | None = None
    hybrid_history: HybridHistoryToolRetrieval | None = None


class DynamicRetrievalWeights(Node):
    semantic: float | None = None
    history: float | None = None
    decision_prior: float | None = None
    repetition_penalty: float | None = None


class DynamicRetrieval(Node):
    enabled: bool | None = None
    strategy: str | None = None
    history_window: int | None = None
    weights: DynamicRetrievalWeights | None = None
    min_history_confidence: float | None = None
    fallback_on_low_confidence: bool | None = None


class TrustedFacts(Node):
    enabled: bool | None = None
    enforcement: str | None = None
    trust_sources: list[str] | None = None
    freshness_seconds: int | None = None
    stage_roles: list[str] | None = None


class ToolsPlugin(Node):
    enabled: bool | None = None
    mode: str | None = None
    semantic_selection: bool | None = None
    allow_tools: list[str] | None = None
    block_tools: list[str] | None = None
    strip_tool_history: bool | None = None
    strategy: str | None = None
    dynamic_retrieval: DynamicRetrieval | None = None
    trusted_facts: TrustedFacts | None = None


class ToolSelectionPlugin(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "sticky": "sticky tool sessions are not built",
    }

    enabled: bool | None = None
    mode: str | None = None
    tools_db_path: str | None = None
    top_k: int | None = None
    similarity_threshold: float | None = None
    advanced_filtering: AdvancedToolFiltering | None = None
    strategy: str | None = None
    fallback_to_empty: bool | None = None
    relevance_threshold: float | None = None
    preserve_count: int | None = None
