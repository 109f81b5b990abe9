"""ServerSettings: everything that shapes the HTTP side of the engine, as one immutable record. Field names are the flags' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.errors import ConfigError
from headway.http.settings import HttpSettings


@dataclass(frozen=True, slots=True)
class ServerSettings(HttpSettings):
    """Defaults are the flags' defaults (`server/flags.py`; a test compares them)."""

    # where it listens
    root_path: str = ""  # prefix that a proxy in front has stripped
    # who may come in
    allowed_origins: tuple[str, ...] = ()  # CORS is off while this is empty
    allowed_methods: tuple[str, ...] = ("*",)
    allowed_headers: tuple[str, ...] = ("*",)
    allow_credentials: bool = False
    # how much a request may be
    request_timeout: float = 0.0  # seconds from the engine's taking it to the end of the answer; 0 = for ever
    # chat
    response_role: str = "assistant"
    chat_template: str | None = None  # the text of a template, or the path of a file with it
    default_chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    trust_request_chat_template: bool = False
    chat_template_render_timeout: float = 30.0  # VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT; for templates of requests
    exclude_tools_when_tool_choice_none: bool = False
    enable_auto_tool_choice: bool = False
    tool_call_parser: str | None = None
    tool_parser_plugin: str | None = None  # a Python file or module
    reasoning_parser: str | None = None
    # answers
    return_tokens_as_token_ids: bool = False
    enable_prompt_tokens_details: bool = False
    enable_force_include_usage: bool = False
    enable_request_id_headers: bool = False
    sse_keep_alive_interval: float = 0.0  # seconds; 0 = no keep-alive comments
    stream_interval: int = 1
    fingerprint_mode: str = "full"  # full | hash | none
    disable_fastapi_docs: bool = False
    enable_tokenizer_info_endpoint: bool = False
    enable_per_request_metrics: bool = False
    middleware: tuple[str, ...] = ()  # import paths
    server_dev_mode: bool = False  # VLLM_SERVER_DEV_MODE
    enable_responses_api_store: bool = False  # VLLM_ENABLE_RESPONSES_API_STORE
    # LoRA
    lora_modules: tuple[str, ...] = ()
    allow_runtime_lora_updating: bool = False  # VLLM_ALLOW_RUNTIME_LORA_UPDATING
    lora_folders: tuple[str, ...] = ()  # HEADWAY_LORA_FOLDERS; () = adapters may be loaded from anywhere
    # logs
    enable_log_requests: bool = False
    enable_log_outputs: bool = False
    max_log_len: int | None = None  # characters of a text in the log
    log_config_file: str | None = None
    log_level: str | None = None
    legacy_metric_names: bool = True
    custom_histogram_buckets: Mapping[str, Any] = field(default_factory=dict)  # metric or group -> borders
    trace_function: bool = False  # VLLM_TRACE_FUNCTION
    # life
    exit_on_engine_death: bool = False
    health_stall_seconds: float = 300.0  # VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS; 0 = never stalled

    def __post_init__(self) -> None:
        """Raises ConfigError for what the kinds of the flags do not show."""
        HttpSettings.__post_init__(self)
        for name in ("default_chat_template_kwargs", "custom_histogram_buckets"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must be a JSON object, got {type(getattr(self, name)).__name__}", param=name)
