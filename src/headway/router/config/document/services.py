"""Services of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from headway.router.config.document.node import Node


class EmbeddingAPI(Node):
    enabled: bool | None = None


class BatchClassification(Node):
    max_batch_size: int | None = None
    concurrency_threshold: int | None = None
    max_concurrency: int | None = None


class RoutingPreview(Node):
    request_timeout_seconds: int = Field(default=120, ge=1, le=3600)
    max_concurrency: int = Field(default=16, ge=1)


class API(Node):
    embeddings: EmbeddingAPI | None = None
    batch_classification: BatchClassification | None = None
    routing_preview: RoutingPreview | None = None


class ResponseAPIRedis(Node):
    address: str | None = None
    password: str | None = None
    db: int | None = None
    key_prefix: str | None = None
    cluster_mode: bool | None = None
    cluster_addresses: list[str] | None = None
    pool_size: int | None = None
    min_idle_conns: int | None = None
    max_retries: int | None = None
    dial_timeout: int | None = None
    read_timeout: int | None = None
    write_timeout: int | None = None
    tls_enabled: bool | None = None
    tls_cert_path: str | None = None
    tls_key_path: str | None = None
    tls_ca_path: str | None = None
    config_path: str | None = None


class ResponseAPI(Node):
    enabled: bool | None = None
    store_backend: str | None = None
    ttl_seconds: int | None = None
    max_responses: int | None = None
    redis: ResponseAPIRedis | None = None


class TracingExporter(Node):
    type: str | None = None
    endpoint: str | None = None
    insecure: bool | None = None


class TracingSampling(Node):
    type: str | None = None
    rate: float | None = None


class TracingResource(Node):
    service_name: str | None = None
    service_version: str | None = None
    deployment_environment: str | None = None


class Tracing(Node):
    enabled: bool | None = None
    provider: str | None = None
    exporter: TracingExporter | None = None
    sampling: TracingSampling | None = None
    resource: TracingResource | None = None


class Metrics(Node):
    enabled: bool | None = None


class Profiling(Node):
    enabled: bool | None = None
    port: int | None = None
    bind: str | None = None


class Observability(Node):
    tracing: Tracing | None = None
    metrics: Metrics | None = None
    profiling: Profiling | None = None


class Identity(Node):
    user_id_header: str | None = None
    user_groups_header: str | None = None


class AuthzProvider(Node):
    type: str | None = None
    headers: dict[str, str] | None = None


class Authz(Node):
    fail_open: bool | None = None
    identity: Identity | None = None
    providers: list[AuthzProvider] | None = None


class RateLimitMatch(Node):
    user: str | None = None
    group: str | None = None
    model: str | None = None


class RateLimitRule(Node):
    name: str | None = None
    match: RateLimitMatch | None = None
    requests_per_unit: int | None = None
    tokens_per_unit: int | None = None
    unit: str | None = None


class RateLimitProvider(Node):
    type: str | None = None
    address: str | None = None
    domain: str | None = None
    rules: list[RateLimitRule] | None = None


class RateLimit(Node):
    fail_open: bool | None = None
    providers: list[RateLimitProvider] | None = None


class ManagementAPITokenRef(Node):
    env: str | None = None
    role: str | None = None


class ManagementAPIAuth(Node):
    mode: str | None = None
    tokens: list[ManagementAPITokenRef] | None = None
    roles: dict[str, list[str]] | None = None


class ManagementAPI(Node):
    bind_address: str | None = None
    port: int | None = None
    remote_exposure: bool | None = None
    auth: ManagementAPIAuth | None = None


class RouterReplay(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "redis": "replays are kept in SQLite or in memory",
        "postgres": "replays are kept in SQLite or in memory",
        "milvus": "replays are kept in SQLite or in memory",
        "qdrant": "replays are kept in SQLite or in memory",
    }

    capture_request_body: bool | None = None
    capture_response_body: bool | None = None
    capture_personal_data: bool | None = None
    max_records: int | None = None
    max_body_bytes: int | None = None
    max_tool_trace_bytes: int | None = None
    max_tool_trace_steps: int | None = None
    enabled: bool | None = None
    store_backend: str | None = None
    ttl_seconds: int | None = None
    async_writes: bool | None = None


class StartupStatus(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "redis": "the startup status is kept in a file",
    }

    store_backend: str | None = None


class Services(Node):
    api: API | None = None
    response_api: ResponseAPI | None = None
    observability: Observability | None = None
    authz: Authz | None = None
    ratelimit: RateLimit | None = None
    management_api: ManagementAPI | None = None
    router_replay: RouterReplay | None = None
    startup_status: StartupStatus | None = None
