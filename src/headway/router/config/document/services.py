"""Services of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from headway.router.config.document.node import Node, not_supported


class EmbeddingAPI(Node):
    enabled: bool = True


class RoutingPreview(Node):
    request_timeout_seconds: int = Field(default=120, ge=1, le=3600)
    max_concurrency: int = Field(default=16, ge=1)


class API(Node):
    absent: ClassVar[Mapping[str, str]] = {"batch_classification": "the texts of a batch are judged together; there is nothing to tune"}

    embeddings: EmbeddingAPI | None = None
    routing_preview: RoutingPreview | None = None


_ONE_REDIS = "one Redis keeps the responses; name it in address"
_ROUTERS_CHOICE = "the router's connections to Redis need no such setting"


class ResponseAPIRedis(Node):
    """`address` is host:port; `read_timeout` bounds each command, in seconds."""

    absent: ClassVar[Mapping[str, str]] = {
        "cluster_mode": _ONE_REDIS,
        "cluster_addresses": _ONE_REDIS,
        "config_path": _ONE_REDIS,
        "pool_size": _ROUTERS_CHOICE,
        "min_idle_conns": _ROUTERS_CHOICE,
        "max_retries": _ROUTERS_CHOICE,
        "dial_timeout": "read_timeout bounds connecting, too",
        "write_timeout": "read_timeout bounds writing, too",
    }

    address: str = Field(default="localhost:6379", pattern=r"^[^\s/]+:\d{1,5}$")
    password: str | None = None
    db: int = Field(default=0, ge=0)
    key_prefix: str = "headway:response:"
    read_timeout: int = Field(default=1, ge=1)
    tls_enabled: bool = False
    tls_cert_path: str | None = None
    tls_key_path: str | None = None
    tls_ca_path: str | None = None


class ResponseAPI(Node):
    """`POST /v1/responses` and the store behind `previous_response_id`."""

    enabled: bool = True
    store_backend: Literal["memory", "redis"] = "memory"
    ttl_seconds: int = Field(default=86_400, ge=0)
    max_responses: int = Field(default=1000, ge=1)
    redis: ResponseAPIRedis | None = None


class LimitRedis(ResponseAPIRedis):
    key_prefix: str = "headway:limits:"


class BudgetRedis(ResponseAPIRedis):
    key_prefix: str = "headway:budgets:"


class ReplayRedis(ResponseAPIRedis):
    absent: ClassVar[Mapping[str, str]] = {**ResponseAPIRedis.absent, "tls_skip_verify": "certificates are always checked; name the authority in tls_ca_path"}
    other_names: ClassVar[Mapping[str, str]] = {"use_tls": "tls_enabled"}

    key_prefix: str = "headway:replay:"


class Tracing(Node):
    """Spans are not exported; the header x-vsr-trace explains one request, /metrics all of them. A block that is switched off may stay."""

    enabled: bool = False
    provider: str | None = None
    exporter: dict[str, Any] | None = None
    sampling: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None

    @field_validator("enabled")
    @classmethod
    def _stay_off(cls, on: bool) -> bool:
        if on:
            raise not_supported("tracing", "spans are not exported; x-vsr-trace explains one request, /metrics all of them")
        return on


class Metrics(Node):
    absent: ClassVar[Mapping[str, str]] = {"windowed_metrics": "ask the metrics store for rates over a window"}

    enabled: bool = True
    bind_address: str = "127.0.0.1"  # an addition of Headway, as is the port
    port: int | None = Field(default=None, ge=1, le=65535)


class Profiling(Node):
    """There is no profiling address. A block that is switched off may stay."""

    enabled: bool = False
    port: int | None = None
    bind: str | None = None

    @field_validator("enabled")
    @classmethod
    def _stay_off(cls, on: bool) -> bool:
        if on:
            raise not_supported("profiling", "there is no profiling address; use a profiler on the process")
        return on


class Observability(Node):
    tracing: Tracing | None = None
    metrics: Metrics | None = None
    profiling: Profiling | None = None


class Identity(Node):
    user_id_header: str | None = None
    user_groups_header: str | None = None


class Authz(Node):
    """Which headers carry the identity that a trusted proxy has established."""

    absent: ClassVar[Mapping[str, str]] = {
        "providers": "clients' own keys for backends are not passed on; give each backend its api_key_env",
        "fail_open": "a request without an identity has no role, and matches no authz rule",
    }

    identity: Identity | None = None


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
    """Where requests and tokens are counted: in this process, or in Redis for all routers together.

    While Redis does not answer, requests under a rule are refused with 503, or with `fail_open` each router counts alone. In memory nothing can fail.
    """

    fail_open: bool = False
    store_backend: Literal["memory", "redis"] = "memory"  # an addition of Headway, like the next
    redis: LimitRedis | None = None
    providers: list[RateLimitProvider] | None = None


class Budgets(Node):
    """Where the budgets of keys (`listeners[].keys[].budget`) are counted; an addition of Headway. `fail_open` as for limits."""

    fail_open: bool = False
    store_backend: Literal["memory", "redis"] = "memory"
    redis: BudgetRedis | None = None


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
        "postgres": "replays are kept in SQLite, in Redis or in memory",
        "milvus": "replays are kept in SQLite, in Redis or in memory",
        "qdrant": "replays are kept in SQLite, in Redis or in memory",
    }

    capture_request_body: bool | None = None
    capture_response_body: bool | None = None
    capture_personal_data: bool | None = None
    max_records: int | None = Field(default=None, ge=0)
    max_body_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_steps: int | None = Field(default=None, ge=0)
    enabled: bool = False
    store_backend: Literal["memory", "sqlite", "redis"] = "sqlite"
    redis: ReplayRedis | None = None
    ttl_seconds: int = Field(default=30 * 86_400, ge=0)
    async_writes: bool = True

    @model_validator(mode="after")
    def _writes_beside(self) -> RouterReplay:
        if self.store_backend == "redis" and not self.async_writes:
            raise ValueError("records go to Redis beside the requests, never before their answers: leave async_writes on, or use sqlite")
        return self


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
    budgets: Budgets | None = None
    management_api: ManagementAPI | None = None
    router_replay: RouterReplay | None = None
    startup_status: StartupStatus | None = None
