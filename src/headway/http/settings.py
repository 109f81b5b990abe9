"""HttpSettings: what shapes any HTTP server of ours, whatever it serves. Field names are the flags' names."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where a server listens, who may come in, how much a request may be, how it ends."""

    # where it listens
    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None  # path of a Unix socket; replaces host and port
    ssl_keyfile: str | None = None
    ssl_certfile: str | None = None
    ssl_ca_certs: str | None = None
    ssl_cert_reqs: int = 0  # 0 none, 1 optional, 2 required
    ssl_ciphers: str | None = None
    enable_ssl_refresh: bool = False
    # who may come in
    api_key: tuple[str, ...] = ()
    # how much a request may be
    max_request_bytes: int = 32 * 1024 * 1024
    max_json_depth: int = 64
    h11_max_incomplete_event_size: int = 4 * 1024 * 1024  # bytes of request line and headers
    h11_max_header_count: int = 256
    request_head_timeout: float = 30.0  # seconds for request line and headers; 0 = for ever
    request_body_timeout: float = 300.0  # seconds for the body; 0 = for ever
    max_connections: int = 0  # at the same time; 0 = as many as the process may have open
    timeout_keep_alive: float = 5.0  # VLLM_HTTP_TIMEOUT_KEEP_ALIVE
    # logs
    uvicorn_log_level: str = "info"
    disable_uvicorn_access_log: bool = False
    disable_access_log_for_endpoints: tuple[str, ...] = ()
    # life
    shutdown_timeout: float = 0.0  # seconds that requests may still run after SIGTERM

    def __post_init__(self) -> None:
        """Raises ConfigError for what the kinds of the flags do not show."""
        if any(not key.strip() for key in self.api_key):
            raise ConfigError("an API key is empty, so that everybody would have it", param="api_key", fix="Leave --api-key out, or give a key.")
