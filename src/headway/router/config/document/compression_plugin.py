"""Compression plugin of a configuration document."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from headway.router.config.document.node import Node, not_supported

TokenLimit = Annotated[int, Field(ge=0)] | Literal["auto"]


class ContextCompressionBudget(Node):
    """Of the whole request, in tokens. `auto` follows from the chosen model's window and the answer that is asked for."""

    trigger_tokens: TokenLimit = "auto"
    target_tokens: TokenLimit = "auto"
    reserve_output_tokens: TokenLimit = "auto"

    @model_validator(mode="after")
    def _shrink(self) -> ContextCompressionBudget:
        if isinstance(self.trigger_tokens, int) and isinstance(self.target_tokens, int) and 0 < self.trigger_tokens <= self.target_tokens:
            raise ValueError(f"target_tokens ({self.target_tokens}) must be less than trigger_tokens ({self.trigger_tokens})")
        return self


class ContextCompressionCurrentUser(Node):
    mode: Literal["preserve", "truncate"] = "preserve"


class ContextCompressionTarget(Node):
    """Texts of one kind longer than `min_tokens` are brought down to `target_tokens`."""

    mode: Literal["preserve", "extractive", "recoverable"] = "preserve"
    min_tokens: int | None = Field(default=None, ge=0)
    target_tokens: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _shrink(self) -> ContextCompressionTarget:
        if self.mode == "recoverable":
            raise not_supported("mode: recoverable", "left-out parts cannot be brought back; use extractive with a larger target_tokens")
        if self.min_tokens and self.target_tokens and self.target_tokens >= self.min_tokens:
            raise ValueError(f"target_tokens ({self.target_tokens}) must be less than min_tokens ({self.min_tokens})")
        return self


class ContextCompressionTargets(Node):
    current_user: ContextCompressionCurrentUser = ContextCompressionCurrentUser()
    tool_outputs: ContextCompressionTarget = ContextCompressionTarget(mode="extractive", min_tokens=2000, target_tokens=1000)
    history: ContextCompressionTarget = ContextCompressionTarget()
    rag: ContextCompressionTarget = ContextCompressionTarget()
    memory: ContextCompressionTarget = ContextCompressionTarget()

    @model_validator(mode="after")
    def _have_no_memory(self) -> ContextCompressionTargets:
        if self.memory.mode != "preserve":
            raise not_supported("targets.memory", "long-term memory is not built, so nothing of it is in a request")
        return self


class ContextCompressionScoring(Node):
    """`embedding_model_ref` names a deployment."""

    method: Literal["bm25", "embedding", "hybrid"] = "bm25"
    embedding_model_ref: str | None = None

    @model_validator(mode="after")
    def _name_a_model(self) -> ContextCompressionScoring:
        if self.method != "bm25" and not self.embedding_model_ref:
            raise ValueError(f"embedding_model_ref is required when method is {self.method}")
        return self


class ContextCompressionRecovery(Node):
    enabled: bool = False
    store: Literal["redis", "valkey", "response_cache"] | None = None
    ttl_seconds: int = Field(default=900, ge=0)
    max_bytes_per_request: int = Field(default=10 << 20, ge=0)
    max_total_bytes: int = Field(default=256 << 20, ge=0)
    max_retrievals: int = Field(default=8, ge=0)

    @model_validator(mode="after")
    def _stay_off(self) -> ContextCompressionRecovery:
        if self.enabled:
            raise not_supported("recovery", "left-out parts cannot be brought back; use extractive with a larger target_tokens")
        return self


class ContextCompressionRequestControls(Node):
    enabled: bool = False
    header: str = "x-vsr-compression-control"
    allowed: list[Literal["bypass", "target"]] = []
    max_target_tokens: int = Field(default=16000, ge=0)


class ContextCompressionPlugin(Node):
    enabled: bool
    mode: Literal["auto", "always"] = "auto"
    budget: ContextCompressionBudget = ContextCompressionBudget()
    targets: ContextCompressionTargets = ContextCompressionTargets()
    scoring: ContextCompressionScoring = ContextCompressionScoring()
    recovery: ContextCompressionRecovery = ContextCompressionRecovery()
    request_controls: ContextCompressionRequestControls = ContextCompressionRequestControls()
    failure_mode: Literal["fail_open", "fail_closed"] = "fail_open"


class PromptCachePlugin(Node):
    """Cache markers for backends that speak Anthropic's protocol."""

    enabled: bool = False
    ttl: Literal["5m", "1h"] = "5m"
    targets: list[Literal["instructions", "tools"]] = Field(default=["instructions", "tools"], min_length=1)
    on_unsupported: Literal["skip", "reject"] = "skip"

    @model_validator(mode="after")
    def _name_once(self) -> PromptCachePlugin:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("targets names the same part twice")
        return self
