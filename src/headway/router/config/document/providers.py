"""Providers of a configuration document: the models that requests are sent to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headway.router.catalog.retry_conditions import known_words
from headway.router.config.document.node import Node
from headway.router.config.document.prefix_routing import KVEventSource, PrefixRoutingSettings
from headway.router.config.duration import Duration, PositiveDuration, seconds

Price = Annotated[float, Field(ge=0)]
Mode = Literal["enabled", "disabled", "adaptive"]


class ModelPricing(Node):
    """For a million tokens of each kind."""

    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    prompt_per_1m: Price = 0.0
    completion_per_1m: Price = 0.0
    cached_input_per_1m: Price = 0.0
    cache_write_per_1m: Price | None = None
    cache_write_1h_per_1m: Price | None = None


class Reasoning(Node):
    """A family by name, or how the model's reasoning is switched: `parameter` is what `type` sets, `levels` are its efforts."""

    family: str | None = None
    type: Literal["chat_template_kwargs", "reasoning_effort", "reasoning_mode", "top_level_reasoning_effort"] | None = None
    parameter: str | None = None
    activation_parameter: str | None = None
    effort_flags: dict[str, str] | None = None
    levels: list[str] | None = None
    default: str | None = None
    modes: list[Mode] | None = None
    default_mode: Mode | None = None
    disabled: str | None = None

    @model_validator(mode="after")
    def _is_coherent(self) -> Reasoning:
        inline = any(getattr(self, name) for name in type(self).model_fields if name != "family")
        if self.family and inline:
            raise ValueError("reasoning is either a family or written out, not both")
        if not self.family and not (self.type and self.parameter):
            raise ValueError("reasoning needs a family, or type and parameter")
        if inline:
            self._check_levels()
            self._check_modes()
            self._check_flags()
        return self

    def _check_levels(self) -> None:
        if self.type in ("reasoning_effort", "top_level_reasoning_effort") and not self.levels:
            raise ValueError(f"type {self.type} needs levels")
        if self.levels and self.default is not None and self.default not in self.levels:
            raise ValueError(f'default "{self.default}" is not one of the levels')
        if self.activation_parameter and (self.type != "reasoning_effort" or self.activation_parameter == self.parameter):
            raise ValueError("activation_parameter needs type reasoning_effort and a name other than parameter")

    def _check_modes(self) -> None:
        if bool(self.modes) != (self.default_mode is not None):
            raise ValueError("modes and default_mode come together")
        if self.modes and self.default_mode not in self.modes:
            raise ValueError(f'default_mode "{self.default_mode}" is not one of the modes')
        if self.disabled and self.modes and "disabled" not in self.modes:
            raise ValueError('a disabled value needs the mode "disabled"')

    def _check_flags(self) -> None:
        flags = self.effort_flags or {}
        if not flags:
            return
        if self.type != "reasoning_effort" or not self.activation_parameter:
            raise ValueError("effort_flags need type reasoning_effort and an activation_parameter")
        if not set(flags) <= set(self.levels or ()):
            raise ValueError("effort_flags may only name levels")
        if len({*flags.values(), self.parameter, self.activation_parameter}) != len(flags) + 2 or not all(map(str.strip, flags.values())):
            raise ValueError("the values of effort_flags are distinct names, other than parameter and activation_parameter")
        if len([level for level in self.levels or () if level != self.disabled]) - len(flags) > 1:
            raise ValueError("effort_flags leave several levels that cannot be told apart")


class BackendRef(Node):
    """One address of a model: `endpoint` (host:port, or unix:///path) or `base_url`; a provider that is known by its id needs neither.

    The key is `api_key`, or what the environment variable `api_key_env` holds. `openai_compat_gateway` says that a relay adds fields of its own to
    the usage; such fields are never in the way, whatever it says.
    """

    name: str | None = None
    endpoint: str | None = Field(default=None, pattern=r"\S")
    protocol: Literal["http", "https"] = "http"
    weight: int = Field(default=1, ge=0)
    base_url: str | None = Field(default=None, pattern=r"\S")
    provider: str = "vllm"
    auth_header: str | None = None
    auth_prefix: str | None = None
    extra_headers: dict[str, str] | None = None
    api_version: str | None = None
    chat_path: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    openai_compat_gateway: bool = False
    kv_events: KVEventSource | None = None

    @model_validator(mode="after")
    def _one_address(self) -> BackendRef:
        if self.endpoint and self.base_url:
            raise ValueError("a backend has an endpoint or a base_url, not both")
        if self.api_key and self.api_key_env:
            raise ValueError("a backend has an api_key or an api_key_env, not both")
        return self


class ProviderReliability(Node):
    """What is absent has the value that docs/routing.md states. Durations are texts such as 30s; 0 for total and idle means no limit. The places of a
    backend (`max_in_flight`, and the queue before them) are an addition of Headway."""

    lb_policy: Literal["round_robin", "least_request"] = "round_robin"
    retry_count: int | None = Field(default=None, ge=0, le=5)
    retry_on: Annotated[str, AfterValidator(known_words)] | None = None
    consecutive_5xx: int = Field(default=0, ge=0)
    base_ejection_time: PositiveDuration = "30s"
    max_ejection_percent: int = Field(default=50, ge=0, le=100)
    health_check_path: str | None = Field(default=None, pattern="^/")
    health_check_interval: PositiveDuration = "10s"
    health_check_timeout: PositiveDuration = "2s"
    connect_timeout: PositiveDuration | None = None
    total_timeout: Duration | None = None
    idle_timeout: Duration | None = None
    per_try_timeout: PositiveDuration | None = None
    first_byte_timeout: PositiveDuration | None = None
    retriable_status_codes: list[Annotated[int, Field(ge=100, le=599)]] | None = None
    retry_back_off_base: PositiveDuration | None = None
    retry_back_off_max: PositiveDuration | None = None
    retry_after_max: PositiveDuration | None = None
    retry_budget_percent: float | None = Field(default=None, gt=0, le=100)
    retry_budget_min_concurrency: int | None = Field(default=None, ge=0)
    max_in_flight: int | None = Field(default=None, ge=1)
    max_waiting: int | None = Field(default=None, ge=0)
    max_wait: PositiveDuration | None = None

    @model_validator(mode="after")
    def _grow(self) -> ProviderReliability:
        if self.retry_back_off_max is not None and seconds(self.retry_back_off_max) < seconds(self.retry_back_off_base or "25ms"):
            raise ValueError("retry_back_off_max is less than retry_back_off_base")
        return self


class ProviderModel(Node):
    """`name` is what recipes and clients call the model, `provider_model_id` what its backends call it (the name, unless given)."""

    absent: ClassVar[Mapping[str, str]] = {
        "catalog": "there is no built-in catalogue of models; describe the model in routing.modelCards and name its family in reasoning",
    }

    name: str = Field(pattern=r"\S")
    deployment: str | None = None
    reasoning: Reasoning | None = None
    provider_model_id: str | None = None
    backend_refs: list[BackendRef] | None = None
    prefill_refs: list[BackendRef] | None = None  # engines that compute prompts, whose KV blocks the backends take over
    pricing: ModelPricing | None = None
    reliability: ProviderReliability | None = None
    api_format: Literal["openai", "responses", "anthropic", "systemone"] | None = None
    external_model_ids: dict[str, str] | None = None
    prefix_routing: PrefixRoutingSettings | None = None


class ProviderDefaults(Node):
    model: str | None = None
    reasoning_effort: str | None = None


class Providers(Node):
    defaults: ProviderDefaults | None = None
    models: list[ProviderModel] | None = None
