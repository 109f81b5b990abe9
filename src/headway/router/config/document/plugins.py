"""Plugins of a configuration document: the entry of a decision, and the smaller configurations."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from headway.router.config.document.node import Node, not_supported

PluginType = Literal[
    "context_compression",
    "fast_response",
    "hallucination",
    "header_mutation",
    "masking",
    "prompt_cache",
    "rag",
    "request_params",
    "response_cache",
    "response_jailbreak",
    "router_replay",
    "shadow_dispatch",
    "system_prompt",
    "tool_selection",
    "tools",
]

_OTHER_TYPES = {"semantic-cache": "response_cache", "semantic_cache": "response_cache", "response-cache": "response_cache"}
_ABSENT_TYPES = {
    "memory": "long-term memory is not built; rag over a local vector store is",
    "image_gen": "name an image model as the decision's modelRef instead",
    "content_safety": "use the signals jailbreak and safety, and the plugin response_jailbreak",
}

Share = Annotated[float, Field(ge=0, le=1)]
"""A probability, similarity or rate."""


class DecisionPlugin(Node):
    """`configuration` is checked against the class that `plugins/table.py` names for `type`."""

    type: PluginType
    configuration: dict[str, Any]

    @field_validator("type", mode="before")
    @classmethod
    def _read_type(cls, value: Any) -> Any:
        if isinstance(value, str) and value in _ABSENT_TYPES:
            raise not_supported(f"plugin {value}", _ABSENT_TYPES[value])
        return _OTHER_TYPES.get(value, value) if isinstance(value, str) else value


class FastResponsePlugin(Node):
    message: str


class SystemPromptPlugin(Node):
    """`replace` drops the client's instructions, `insert` puts the text before them."""

    enabled: bool = True
    system_prompt: str = ""
    mode: Literal["replace", "insert"] = "replace"


class HeaderPair(Node):
    name: str
    value: str


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "keep-alive", "content-type"})


class HeaderMutationPlugin(Node):
    """Headers of the request to the backend; values are static. `add` appends to what is there, `update` replaces it."""

    add: list[HeaderPair] = []
    update: list[HeaderPair] = []
    delete: list[str] = []

    @model_validator(mode="after")
    def _leave_the_connection_alone(self) -> HeaderMutationPlugin:
        for name in (*(pair.name for pair in (*self.add, *self.update)), *self.delete):
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a header name")
            if name.lower() in _FRAMING_HEADERS or name.lower().startswith("x-envoy-"):
                raise ValueError(f"{name} belongs to the connection, its retries and timeouts: set providers.models[].reliability instead")
        for pair in (*self.add, *self.update):
            if any((ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in pair.value):
                raise ValueError(f"the value of {pair.name} holds a control character")
        return self


class RequestParamsPlugin(Node):
    """`default_max_tokens: auto` is what the chosen model's card says it can write."""

    default_max_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    blocked_params: list[str] = []
    max_tokens_limit: int | None = Field(default=None, ge=1)
    max_n: int | None = Field(default=None, ge=1)
    strip_unknown: bool = False

    @field_validator("blocked_params")
    @classmethod
    def _leave_a_request(cls, names: list[str]) -> list[str]:
        for name in names:
            if name in ("model", "messages", "stream"):
                raise ValueError(f"{name} cannot be blocked: without it the request means something else")
        return names


class MaskingPlugin(Node):
    """`entity_types` lists what is masked; empty means every type. A template holds `{index}`."""

    enabled: bool
    threshold: Share = 0.0
    entity_types: list[str] = []
    placeholders: dict[str, str] = {}

    @field_validator("placeholders")
    @classmethod
    def _tell_values_apart(cls, templates: dict[str, str]) -> dict[str, str]:
        for entity, template in templates.items():
            if "{index}" not in template:
                raise ValueError(f'the placeholder of {entity} must contain "{{index}}", or different values would look the same')
        return templates


WarningAction = Literal["header", "body", "none"]


class HallucinationPlugin(Node):
    enabled: bool
    hallucination_action: WarningAction = "header"
    unverified_factual_action: WarningAction = "header"
    include_hallucination_details: bool = False


class ResponseJailbreakPlugin(Node):
    enabled: bool
    threshold: Share | None = None
    action: Literal["block", "header", "none"] = "block"


class RouterReplayPlugin(Node):
    """What is absent follows `global.services.router_replay`."""

    capture_personal_data: bool | None = None
    enabled: bool | None = None
    max_records: int | None = Field(default=None, ge=0)
    capture_request_body: bool | None = None
    capture_response_body: bool | None = None
    max_body_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_bytes: int | None = Field(default=None, ge=0)
    max_tool_trace_steps: int | None = Field(default=None, ge=0)


CREDENTIAL_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        *(f"x-user-{vendor}-key" for vendor in ("openai", "anthropic", "azure-openai", "bedrock", "gemini", "vertex-ai", "minimax")),
    }
)


class ShadowDispatchPlugin(Node):
    """A copy of sampled requests to a second model; its answers never reach the client."""

    enabled: bool
    model: str | None = None
    sample_rate: Share = 1.0
    max_concurrency: int = Field(default=2, ge=1)
    max_queue_depth: int = Field(default=8, ge=0)
    timeout_seconds: int = Field(default=30, ge=1)
    max_response_bytes: int = Field(default=1 << 20, ge=1)
    max_retries: int = Field(default=0, ge=0, le=3)
    capture_response_body: bool = False
    max_capture_bytes: int = Field(default=4096, ge=0)
    tls_skip_verify: bool = False
    forward_headers: list[str] = []

    @field_validator("forward_headers")
    @classmethod
    def _carry_no_credentials(cls, names: list[str]) -> list[str]:
        for name in names:
            if not name.strip() or name.startswith(":") or name.strip().lower() in CREDENTIAL_HEADERS:
                raise ValueError(f"forward_headers may not name {name!r}: a copy never carries credentials, and names are not empty")
        return names

    @model_validator(mode="after")
    def _name_a_model(self) -> ShadowDispatchPlugin:
        if self.enabled and not (self.model or "").strip():
            raise ValueError("model is required: the logical model that gets the copies")
        if self.tls_skip_verify:
            raise not_supported("tls_skip_verify", "a copy uses the connections of the model's own backends, which check certificates")
        return self


class RAGRerank(Node):
    top_k: int | None = Field(default=None, ge=1)


class RAGPlugin(Node):
    """`backend_config` of the local store: `vector_store_id`."""

    enabled: bool
    backend: str
    similarity_threshold: Share | None = None
    top_k: int = Field(default=5, ge=1, le=100)
    max_context_length: int | None = Field(default=None, ge=1)
    injection_mode: Literal["tool_role", "system_prompt"] = "tool_role"
    rerank: RAGRerank | None = None
    backend_config: dict[str, Any] = {}
    on_failure: Literal["skip", "block", "warn"] = "skip"
    cache_results: bool = False
    cache_ttl_seconds: int | None = Field(default=None, ge=1)
    min_confidence_threshold: Share | None = None

    @model_validator(mode="after")
    def _use_the_local_store(self) -> RAGPlugin:
        if self.backend != "vectorstore":
            raise not_supported(f"rag backend {self.backend}", "use vectorstore, the router's own local store")
        if self.enabled and not isinstance(self.backend_config.get("vector_store_id"), str):
            raise ValueError("backend_config.vector_store_id is required: the id or the name of a local vector store")
        if self.rerank and (self.rerank.top_k or 1) > self.top_k:
            raise ValueError(f"rerank.top_k is {self.rerank.top_k}, more than the {self.top_k} candidates of top_k")
        if self.cache_ttl_seconds is not None and not self.cache_results:
            raise ValueError("cache_ttl_seconds needs cache_results: true")
        return self
