"""ServerSettings: everything that shapes the HTTP side, as one immutable record. Field names are the flags' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Defaults are the flags' defaults (`server/flags.py`; a test compares them)."""

    # where it listens
    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None  # path of a Unix socket; replaces host and port
    root_path: str = ""  # prefix that a proxy in front has stripped
    ssl_keyfile: str | None = None
    ssl_certfile: str | None = None
    ssl_ca_certs: str | None = None
    ssl_cert_reqs: int = 0  # 0 none, 1 optional, 2 required
    ssl_ciphers: str | None = None
    enable_ssl_refresh: bool = False
    # who may come in
    api_key: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()  # CORS is off while this is empty
    allowed_methods: tuple[str, ...] = ("*",)
    allowed_headers: tuple[str, ...] = ("*",)
    allow_credentials: bool = False
    # how much a request may be
    max_request_bytes: int = 32 * 1024 * 1024
    max_json_depth: int = 64
    h11_max_incomplete_event_size: int = 4 * 1024 * 1024  # bytes of request line and headers
    h11_max_header_count: int = 256
    request_head_timeout: float = 30.0  # seconds for request line and headers; 0 = for ever
    request_body_timeout: float = 300.0  # seconds for the body; 0 = for ever
    request_timeout: float = 0.0  # seconds from the engine's taking it to the end of the answer; 0 = for ever
    max_connections: int = 0  # at the same time; 0 = as many as the process may have open
    # chat
    response_role: str = "assistant"
    chat_template: str | None = None  # the text of a template, or the path of a file with it
    default_chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    trust_request_chat_template: bool = False
    chat_template_render_timeout: float = 30.0  # VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT; for templates of requests
    exclude_tools_when_tool_choice_none: bool = False
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
    # logs
    enable_log_requests: bool = False
    enable_log_outputs: bool = False
    max_log_len: int | None = None  # characters of a text in the log
    log_config_file: str | None = None
    uvicorn_log_level: str = "info"
    disable_uvicorn_access_log: bool = False
    disable_access_log_for_endpoints: tuple[str, ...] = ()
    log_level: str | None = None
    legacy_metric_names: bool = True
    custom_histogram_buckets: Mapping[str, Any] = field(default_factory=dict)  # metric or group -> borders
    trace_function: bool = False  # VLLM_TRACE_FUNCTION
    # life
    shutdown_timeout: float = 0.0  # seconds that requests may still run after SIGTERM
    exit_on_engine_death: bool = False
    health_stall_seconds: float = 300.0  # VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS; 0 = never stalled
    timeout_keep_alive: float = 5.0  # VLLM_HTTP_TIMEOUT_KEEP_ALIVE

    def __post_init__(self) -> None:
        """Raises ConfigError for what the kinds of the flags do not show."""
        if any(not key.strip() for key in self.api_key):
            raise ConfigError("an API key is empty, so that everybody would have it", param="api_key", fix="Leave --api-key out, or give a key.")
        for name in ("default_chat_template_kwargs", "custom_histogram_buckets"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must be a JSON object, got {type(getattr(self, name)).__name__}", param=name)
