"""Cache plugin of a configuration document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from headway.router.config.document.node import Node
from headway.router.config.document.plugins import Share

Directive = Literal["no-cache", "no-store", "bypass", "max-age", "ttl"]
DEFAULT_CONTROL_HEADER = "x-vsr-cache-control"


class ResponseCacheSemantic(Node):
    similarity_threshold: Share | None = None


class ResponseCacheRequestControls(Node):
    """What clients may say about caching of their own requests."""

    enabled: bool = False
    header: str = DEFAULT_CONTROL_HEADER
    allowed: list[Directive] = []
    max_ttl_seconds: int | None = Field(default=None, ge=0)


class ResponseCachePersonalized(Node):
    """Whether requests that rag or masking changes may be cached: never, or as exact copies only."""

    mode: Literal["disabled", "exact"] = "disabled"


class ResponseCacheRevision(Node):
    """Words that are part of every entry's identity: a new word begins an empty cache."""

    cache_epoch: str | None = None
    model_revision: str | None = None
    prompt_revision: str | None = None
    policy_revision: str | None = None


class ResponseCachePlugin(Node):
    enabled: bool
    mode: Literal["semantic", "exact", "exact_then_semantic"] = "semantic"
    scope: Literal["user", "team", "tenant", "global"] = "user"
    semantic: ResponseCacheSemantic | None = None
    request_controls: ResponseCacheRequestControls | None = None
    personalized: ResponseCachePersonalized = ResponseCachePersonalized()
    revision: ResponseCacheRevision = ResponseCacheRevision()
    allow_request_controls: bool = False
    control_header: str | None = None
    similarity_threshold: Share | None = None
    ttl_seconds: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _say_it_once(self) -> ResponseCachePlugin:
        if self.semantic is not None and self.similarity_threshold is not None:
            raise ValueError("similarity_threshold is the older spelling of semantic.similarity_threshold: keep one of them")
        if self.request_controls is not None and (self.allow_request_controls or self.control_header is not None):
            raise ValueError("allow_request_controls and control_header are the older spelling of request_controls: keep one of them")
        return self

    @property
    def threshold(self) -> float | None:
        """Of this decision; None leaves it to the store."""
        return self.semantic.similarity_threshold if self.semantic else self.similarity_threshold

    @property
    def controls(self) -> ResponseCacheRequestControls:
        if self.request_controls is not None:
            return self.request_controls
        return ResponseCacheRequestControls(
            enabled=self.allow_request_controls,
            header=self.control_header or DEFAULT_CONTROL_HEADER,
            allowed=["no-cache", "no-store", "bypass", "max-age", "ttl"],
        )
