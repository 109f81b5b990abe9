"""Algorithms of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from headway.router.config.document.node import Node


class RouterDCSelection(Node):
    temperature: float | None = None
    dimension_size: int | None = None
    min_similarity: float | None = None
    use_query_contrastive: bool | None = None
    use_model_contrastive: bool | None = None
    require_descriptions: bool | None = None
    use_capabilities: bool | None = None


class HybridSelection(Node):
    experience_weight: float | None = None
    router_dc_weight: float | None = None
    automix_weight: float | None = None
    cost_weight: float | None = None
    quality_gap_threshold: float | None = None
    normalize_scores: bool | None = None


class HybridWeights(Node):
    logprob_weight: float | None = None
    margin_weight: float | None = None


class ConfidenceAlgorithm(Node):
    confidence_method: str | None = None
    threshold: float | None = None
    hybrid_weights: HybridWeights | None = None
    on_error: str | None = None
    escalation_order: str | None = None
    cost_quality_tradeoff: float | None = None
    token_filter: str | None = None
    verifier_server_url: str | None = None
    verifier_timeout_seconds: int | None = None
    max_response_bytes: int | None = None


class LatencyAwareAlgorithm(Node):
    tpot_percentile: int | None = None
    ttft_percentile: int | None = None
    description: str | None = None


class MultiFactorPriority(Node):
    factor: str | None = None
    tolerance: float | None = None


class MultiFactorObjective(Node):
    strategy: str | None = None
    priorities: list[MultiFactorPriority] | None = None


class MultiFactorWeights(Node):
    quality: float | None = None
    latency: float | None = None
    cost: float | None = None
    load: float | None = None


class MultiFactorSLO(Node):
    max_tpot_ms: float | None = None
    max_ttft_ms: float | None = None
    max_cost_per_1m: float | None = None
    max_inflight: int | None = None


class QualityEvidence(Node):
    index: str | None = None
    on_missing: str | None = None
    min_coverage: float | None = None
    min_score: float | None = None


class MultiFactorSelection(Node):
    objective: MultiFactorObjective | None = None
    weights: MultiFactorWeights | None = None
    slo: MultiFactorSLO | None = None
    quality: QualityEvidence | None = None
    expected_output_tokens: int | None = Field(default=None, ge=1)
    latency_percentile: int | None = None
    latency_metric: Literal["ttft", "tpot"] | None = None
    on_no_candidates: str | None = None


class DecisionSelection(Node):
    deployment: str | None = None
    instructions: str | None = None
    candidates: dict[str, str] | None = None
    timeout_ms: int | None = None


class Algorithm(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "automix": "automix is not built; use confidence (a cascade)",
        "remom": "remom is not built; use confidence",
        "fusion": "fusion is not built; use confidence",
        "workflows": "workflows are not built",
        "ratings": "ratings is not built",
        "prompt": "prompt selection is not built; use decision",
        "quality": "cascades of typed answers are not built",
        "stages": "cascades of typed answers are not built",
        "budget": "cascades of typed answers are not built",
    }

    type: (
        Literal[
            "automix",
            "cascade",
            "confidence",
            "decision",
            "fusion",
            "hybrid",
            "kmeans",
            "knn",
            "latency_aware",
            "mlp",
            "multi_factor",
            "prompt",
            "random",
            "ratings",
            "remom",
            "router_dc",
            "static",
            "svm",
            "workflows",
        ]
        | None
    ) = None
    minimum_candidates: int | None = None
    confidence: ConfidenceAlgorithm | None = None
    router_dc: RouterDCSelection | None = None
    hybrid: HybridSelection | None = None
    latency_aware: LatencyAwareAlgorithm | None = None
    multi_factor: MultiFactorSelection | None = None
    decision: DecisionSelection | None = None
    on_error: str | None = None
