"""Decisions of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headway.router.catalog.retry_conditions import known_words
from headway.router.config.document.algorithms import Algorithm
from headway.router.config.document.learning import DecisionAdaptations
from headway.router.config.document.names import Name
from headway.router.config.document.node import Node
from headway.router.config.document.plugins import DecisionPlugin
from headway.router.config.document.rule_tree import RuleNode
from headway.router.config.duration import Duration, PositiveDuration, seconds

StatusCode = Annotated[int, Field(ge=100, le=599)]


def fallback_seconds(duration: str | int) -> float:
    """A text such as 30s, or a whole number of nanoseconds. Raises DurationError."""
    return seconds(duration if isinstance(duration, str) else duration / 1e9)


def _readable(duration: str | int) -> str | int:
    fallback_seconds(duration)
    return duration


FallbackDuration = Annotated[str | int, AfterValidator(_readable)]


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
    """For each provider model: so many failures in a row, so long a pause, then so many requests at a time that try it."""

    consecutive_failures: int = Field(default=5, ge=0)
    cooldown_period: FallbackDuration = "30s"
    half_open_probes: int = Field(default=1, ge=0)


class FallbackOverride(Node):
    """A decision's word on the fallback policy: what it does not set is the recipe's."""

    enabled: bool | None = None
    max_attempts: int | None = Field(default=None, ge=0)
    total_timeout: FallbackDuration | None = None
    per_attempt_timeout: FallbackDuration | None = None
    retryable_status_codes: list[StatusCode] | None = None

    @model_validator(mode="after")
    def _attempts_fit(self) -> FallbackOverride:
        total, each = self.total_timeout, self.per_attempt_timeout
        if total is not None and each is not None and 0 < fallback_seconds(total) < fallback_seconds(each):
            raise ValueError("per_attempt_timeout is more than total_timeout")
        return self


class FallbackPolicy(FallbackOverride):
    version: Literal[0, 1] | None = None
    circuit_breaker: CircuitBreaker | None = None


class DecisionReliability(Node):
    """Over the provider model's: times and `retry_count` replace, `0s` switches a time off; `retry_on` and the status codes are added."""

    total_timeout: Duration | None = None
    per_try_timeout: Duration | None = None
    idle_timeout: Duration | None = None
    first_byte_timeout: Duration | None = None
    retry_count: int | None = Field(default=None, ge=0, le=5)
    retry_on: Annotated[str, AfterValidator(known_words)] | None = None
    retriable_status_codes: list[StatusCode] | None = None
    retry_back_off_base: PositiveDuration | None = None
    retry_back_off_max: PositiveDuration | None = None
    retry_after_max: PositiveDuration | None = None

    @model_validator(mode="after")
    def _grow(self) -> DecisionReliability:
        if self.retry_back_off_max is not None and seconds(self.retry_back_off_max) < seconds(self.retry_back_off_base or "25ms"):
            raise ValueError("retry_back_off_max is less than retry_back_off_base")
        return self


class Decision(Node):
    """A route: it matches when its rules hold. Without rules (or with an AND of nothing) it is a catch-all, which matches everything and ranks last.

    Higher priorities come first; a tier above 0 anywhere makes lower tiers come before higher ones.
    """

    absent: ClassVar[Mapping[str, str]] = {
        "output_contract": "output contracts are not built",
        "output_contract_spec": "output contracts are not built",
        "candidateIterations": "candidate iterations are not built",
        "emits": "retention directives are not built",
    }

    name: Name
    description: str | None = None
    priority: int = 0
    tier: int = Field(default=0, ge=0)
    rules: RuleNode | None = None
    action: DecisionAction | None = None
    modelRefs: list[ModelRef] | None = None
    algorithm: Algorithm | None = None
    reliability: DecisionReliability | None = None
    fallback: FallbackOverride | None = None
    adaptations: DecisionAdaptations | None = None
    plugins: list[DecisionPlugin] | None = None
    annotations: dict[str, Any] | None = None
