"""Providers of a configuration document."""

from __future__ import annotations

from pydantic import Field

from headway.router.config.document.node import Node


class ModelPricing(Node):
    currency: str | None = None
    prompt_per_1m: float | None = None
    completion_per_1m: float | None = None
    cached_input_per_1m: float | None = None
    cache_write_per_1m: float | None = None
    cache_write_1h_per_1m: float | None = None


class Reasoning(Node):
    family: str | None = None
    type: str | None = None
    parameter: str | None = None
    activation_parameter: str | None = None
    effort_flags: dict[str, str] | None = None
    levels: list[str] | None = None
    default: str | None = None
    modes: list[str] | None = None
    default_mode: str | None = None
    disabled: str | None = None


class BackendRef(Node):
    name: str | None = None
    endpoint: str | None = None
    protocol: str | None = None
    weight: int | None = None
    base_url: str | None = None
    provider: str | None = None
    auth_header: str | None = None
    auth_prefix: str | None = None
    extra_headers: dict[str, str] | None = None
    api_version: str | None = None
    chat_path: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    openai_compat_gateway: bool | None = None


class ProviderReliability(Node):
    lb_policy: str | None = None
    retry_count: int | None = None
    retry_on: str | None = None
    consecutive_5xx: int | None = None
    base_ejection_time: str | None = None
    max_ejection_percent: int | None = None
    health_check_path: str | None = None
    health_check_interval: str | None = None
    health_check_timeout: str | None = None
    connect_timeout: str | None = None
    total_timeout: str | None = None
    idle_timeout: str | None = None
    per_try_timeout: str | None = None
    first_byte_timeout: str | None = None
    retriable_status_codes: list[int] | None = None
    retry_back_off_base: str | None = None
    retry_back_off_max: str | None = None
    retry_after_max: str | None = None
    retry_budget_percent: float | None = None
    retry_budget_min_concurrency: int | None = None


class CalibrationArtifact(Node):
    name: str
    source: str
    sha256: str = Field(pattern="^[a-fA-F0-9]{64}$")


class ProviderModel(Node):
    name: str | None = None
    catalog: str | None = None
    deployment: str | None = None
    reasoning: Reasoning | None = None
    provider_model_id: str | None = None
    backend_refs: list[BackendRef] | None = None
    pricing: ModelPricing | None = None
    reliability: ProviderReliability | None = None
    api_format: str | None = None
    external_model_ids: dict[str, str] | None = None


class ProviderDefaults(Node):
    model: str | None = None
    reasoning_effort: str | None = None


class Providers(Node):
    defaults: ProviderDefaults | None = None
    models: list[ProviderModel] | None = None
