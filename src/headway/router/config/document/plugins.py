"""Plugins of a configuration document."""

from __future__ import annotations

from typing import Any, Literal

from headway.router.config.document.node import Node


class DecisionPlugin(Node):
    type: Literal[
        "context_compression",
        "fast_response",
        "hallucination",
        "header_mutation",
        "masking",
        "memory",
        "prompt_cache",
        "rag",
        "request_params",
        "response_cache",
        "response_jailbreak",
        "router_replay",
        "shadow_dispatch",
        "system_prompt",
        "tool_selection",
        "tools",
    ]
    configuration: dict[str, Any]


class FastResponsePlugin(Node):
    message: str | None = None


class SystemPromptPlugin(Node):
    enabled: bool | None = None
    system_prompt: str | None = None
    mode: str | None = None


class HeaderPair(Node):
    name: str | None = None
    value: str | None = None


class HeaderMutationPlugin(Node):
    add: list[HeaderPair] | None = None
    update: list[HeaderPair] | None = None
    delete: list[str] | None = None


class RequestParamsPlugin(Node):
    default_max_tokens: int | Literal["auto"] | None = None
    blocked_params: list[str] | None = None
    max_tokens_limit: int | None = None
    max_n: int | None = None
    strip_unknown: bool | None = None


class MaskingPlugin(Node):
    enabled: bool | None = None
    threshold: float | None = None
    entity_types: list[str] | None = None
    placeholders: dict[str, str] | None = None


class HallucinationPlugin(Node):
    enabled: bool | None = None
    hallucination_action: str | None = None
    unverified_factual_action: str | None = None
    include_hallucination_details: bool | None = None


class ResponseJailbreakPlugin(Node):
    enabled: bool | None = None
    threshold: float | None = None
    action: str | None = None


class RouterReplayPlugin(Node):
    capture_personal_data: bool | None = None
    enabled: bool | None = None
    max_records: int | None = None
    capture_request_body: bool | None = None
    capture_response_body: bool | None = None
    max_body_bytes: int | None = None
    max_tool_trace_bytes: int | None = None
    max_tool_trace_steps: int | None = None


class ShadowDispatchPlugin(Node):
    enabled: bool | None = None
    model: str | None = None
    sample_rate: float | None = None
    max_concurrency: int | None = None
    max_queue_depth: int | None = None
    timeout_seconds: int | None = None
    max_response_bytes: int | None = None
    max_retries: int | None = None
    capture_response_body: bool | None = None
    max_capture_bytes: int | None = None
    tls_skip_verify: bool | None = None
    forward_headers: list[str] | None = None


class RAGRerank(Node):
    top_k: int | None = None


class RAGPlugin(Node):
    enabled: bool | None = None
    backend: str | None = None
    similarity_threshold: float | None = None
    top_k: int | None = None
    max_context_length: int | None = None
    injection_mode: str | None = None
    rerank: RAGRerank | None = None
    backend_config: dict[str, Any] | None = None
    on_failure: str | None = None
    cache_results: bool | None = None
    cache_ttl_seconds: int | None = None
    min_confidence_threshold: float | None = None
