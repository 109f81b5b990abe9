"""Services of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from headway.router.config.document.node import Node


class EmbeddingAPI(Node):
    enabled: bool = True


class BatchClassification(Node):
    max_batch_size: int | None = Field(default=None, ge=1)
    concurrency_threshold: int | None = Field(default=None, ge=0)
    max_concurrency: int | None = Field(default=None, ge=1)


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
    """`POST /v1/responses` and the store behind `previous_response_id`."""

    enabled: bool = True
    store_backend: Literal["memory", "redis"] = "memory"
    ttl_seconds: int = Field(default=86_400, ge=0)
    max_responses: int = Field(default=1000, ge=1)
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
    absent: ClassVar[Mapping[str, str]] = {"windowed_metrics": "ask the metrics store for rates over a window"}

    enabled: bool = True


class Profiling(Node):
    enabled: bool = False
    port: int | None = Field(default=None, ge=1, le=65535)
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
    fail_open: bool = False
    identity: Identity | None = None
    providers: list[AuthzProvider] | None = None


class RateLimitMatch(Node):
    user: str | None = None
    group: str | None = None
    model: str | None = None


class RateLimitRule(Node):
    """So many requests, or tokens, in each `unit` of time for whom `match` describes; an absent part of it matches everybody."""

    name: str = Field(min_length=1)
    match: RateLimitMatch = RateLimitMatch()
    requests_per_unit: int | None = Field(default=None, ge=1)
    tokens_per_unit: int | None = Field(default=None, ge=1)
    unit: Literal["second", "minute", "hour", "day"] = "minute"

    @model_validator(mode="after")
    def _limits_something(self) -> RateLimitRule:
        if self.requests_per_unit is None and self.tokens_per_unit is None:
            raise ValueError("a rule needs requests_per_unit or tokens_per_unit")
        return self


class RateLimitProvider(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "address": "limits are kept in the router itself; leave address out",
        "domain": "limits are kept in the router itself; leave domain out",
    }

    type: Literal["local-limiter"] = "local-limiter"
    rules: list[RateLimitRule] | None = None


class RateLimit(Node):
    fail_open: bool = False
    providers: list[RateLimitProvider] | None = None


class ManagementAPITokenRef(Node):
    """A token by the environment variable that holds it."""

    env: str = Field(min_length=1)
    role: str = Field(min_length=1)


class ManagementAPIAuth(Node):
    """`roles` maps a role to its permissions."""

    mode: Literal["none", "bearer"] = "none"
    tokens: list[ManagementAPITokenRef] | None = None
    roles: dict[str, list[str]] | None = None

    @model_validator(mode="after")
    def _has_tokens(self) -> ManagementAPIAuth:
        if self.mode == "bearer" and not self.tokens:
            raise ValueError("mode bearer needs tokens")
        return self


class ManagementAPI(Node):
    bind_address: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    remote_exposure: bool = False
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
    max_records: int | None = Field(default=None, ge=0)
    max_body_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_steps: int | None = Field(default=None, ge=0)
    enabled: bool = False
    store_backend: Literal["memory", "sqlite"] = "sqlite"
    ttl_seconds: int = Field(default=30 * 86_400, ge=0)
    async_writes: bool = True


class StartupStatus(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "redis": "the startup status is kept in a file",
    }

    store_backend: Literal["file"] = "file"


class Services(Node):
    api: API | None = None
    response_api: ResponseAPI | None = None
    observability: Observability | None = None
    authz: Authz | None = None
    ratelimit: RateLimit | None = None
    management_api: ManagementAPI | None = None
    router_replay: RouterReplay | None = None
    startup_status: StartupStatus | None = None
