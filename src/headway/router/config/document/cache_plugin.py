"""Cache plugin of a configuration document."""

from __future__ import annotations

from headway.router.config.document.node import Node


class ResponseCacheSemantic(Node):
    similarity_threshold: float | None = None


class ResponseCacheRequestControls(Node):
    enabled: bool | None = None
    header: str | None = None
    allowed: list[str] | None = None
    max_ttl_seconds: int | None = None


class ResponseCachePersonalized(Node):
    mode: str | None = None


class ResponseCacheRevision(Node):
    cache_epoch: str | None = None
    model_revision: str | None = None
    prompt_revision: str | None = None
    policy_revision: str | None = None


class ResponseCachePlugin(Node):
    enabled: bool | None = None
    mode: str | None = None
    scope: str | None = None
    semantic: ResponseCacheSemantic | None = None
    request_controls: ResponseCacheRequestControls | None = None
    personalized: ResponseCachePersonalized | None = None
    revision: ResponseCacheRevision | None = None
    allow_request_controls: bool | None = None
    control_header: str | None = None
    similarity_threshold: float | None = None
    ttl_seconds: int | None = None
