"""Compression plugin of a configuration document."""

from __future__ import annotations

from typing import Literal

from headway.router.config.document.node import Node


class ContextCompressionBudget(Node):
    trigger_tokens: int | Literal["auto"] | None = None
    target_tokens: int | Literal["auto"] | None = None
    reserve_output_tokens: int | Literal["auto"] | None = None


class ContextCompressionCurrentUser(Node):
    mode: str | None = None


class ContextCompressionTarget(Node):
    mode: str | None = None
    min_tokens: int | None = None
    target_tokens: int | None = None


class ContextCompressionTargets(Node):
    current_user: ContextCompressionCurrentUser | None = None
    tool_outputs: ContextCompressionTarget | None = None
    history: ContextCompressionTarget | None = None
    rag: ContextCompressionTarget | None = None
    memory: ContextCompressionTarget | None = None


class ContextCompressionScoring(Node):
    method: str | None = None
    embedding_model_ref: str | None = None


class ContextCompressionRecovery(Node):
    enabled: bool | None = None
    store: str | None = None
    ttl_seconds: int | None = None
    max_bytes_per_request: int | None = None
    max_total_bytes: int | None = None
    max_retrievals: int | None = None


class ContextCompressionRequestControls(Node):
    enabled: bool | None = None
    header: str | None = None
    allowed: list[str] | None = None
    max_target_tokens: int | None = None


class ContextCompressionPlugin(Node):
    enabled: bool | None = None
    mode: str | None = None
    budget: ContextCompressionBudget | None = None
    targets: ContextCompressionTargets | None = None
    scoring: ContextCompressionScoring | None = None
    recovery: ContextCompressionRecovery | None = None
    request_controls: ContextCompressionRequestControls | None = None
    failure_mode: str | None = None
