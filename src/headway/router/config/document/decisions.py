"""Decisions of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from headway.router.config.document.algorithms import Algorithm
from headway.router.config.document.node import Node
from headway.router.config.document.plugins import DecisionPlugin
from headway.router.config.document.rule_tree import RuleNode


class DecisionAction(Node):
    type: Literal["route"]
    destination: str


class ModelRef(Node):
    model: str | None = None
    lora_name: str | None = None
    weight: float | None = None
    use_reasoning: bool | None = None
    reasoning_description: str | None = None
    reasoning_mode: str | None = None
    reasoning_effort: str | None = None


class CircuitBreaker(Node):
    consecutive_failures: int | None = None
    cooldown_period: str | int | None = None
    half_open_probes: int | None = None


class FallbackPolicy(Node):
    version: int | None = None
    enabled: bool | None = None
    max_attempts: int | None = None
    total_timeout: str | int | None = None
    per_attempt_timeout: str | int | None = None
    retryable_status_codes: list[int] | None = None
    circuit_breaker: CircuitBreaker | None = None


class FallbackOverride(Node):
    enabled: bool | None = None
    max_attempts: int | None = None
    total_timeout: str | int | None = None
    per_attempt_timeout: str | int | None = None
    retryable_status_codes: list[int] | None = None


class DecisionReliability(Node):
    total_timeout: str | None = None
    per_try_timeout: str | None = None
    idle_timeout: str | None = None
    first_byte_timeout: str | None = None
    retry_count: int | None = None
    retry_on: str | None = None
    retriable_status_codes: list[int] | None = None
    retry_back_off_base: str | None = None
    retry_back_off_max: str | None = None
    retry_after_max: str | None = None


class Decision(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "output_contract": "output contracts are not built",
        "output_contract_spec": "output contracts are not built",
        "adaptations": "learning is not built",
        "candidateIterations": "candidate iterations are not built",
        "emits": "retention directives are not built",
    }

    name: str | None = None
    description: str | None = None
    priority: int | None = None
    tier: int | None = None
    rules: RuleNode | None = None
    action: DecisionAction | None = None
    modelRefs: list[ModelRef] | None = None
    algorithm: Algorithm | None = None
    reliability: DecisionReliability | None = None
    fallback: FallbackOverride | None = None
    plugins: list[DecisionPlugin] | None = None
    annotations: dict[str, Any] | None = None
