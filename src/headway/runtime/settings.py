"""WorkerSettings: what shapes a worker beside its models, as one immutable record. Field names are the flags' names."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import ConfigError
from headway.http.settings import HttpSettings
from headway.wire.decisions import DECISION_ALIASES


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Defaults are the flags' defaults (`runtime/flags.py`; a test compares them)."""

    # where it listens, who may come in
    host: str = "127.0.0.1"
    port: int = 8100
    uds: str | None = None  # path of a Unix socket; replaces host and port
    api_key: tuple[str, ...] = ()
    decision_alias: tuple[str, ...] = DECISION_ALIASES
    # how much a request may be
    max_request_bytes: int = 8_388_608
    max_bundle_tasks: int = 64
    # how models run; an entry of a models file wins
    threads: int | None = None  # None: all cores that the process may use
    memory_budget: float | None = None  # GiB for one model
    max_queue: int = 256
    max_queued_tokens: int = 4_194_304
    batch_window_ms: float = 2.0
    max_batch_tokens: int = 65_536
    max_num_seqs: int | None = None
    enable_shared_context: bool | None = None  # None: as the family prefers
    batch_invariant: bool = False
    result_cache_entries: int = 16_384
    # loading
    load_attempts: int = 5
    load_retry_seconds: float = 5.0
    cache_dir: str | None = None
    offline: bool = False
    base_path: str | None = None
    accept_licence: tuple[str, ...] = ()
    autotune_cache: str | None = None
    # life and logs
    shutdown_timeout: float = 10.0
    log_level: str = "info"

    def http(self) -> HttpSettings:
        """What the HTTP server below the application is told."""
        return HttpSettings(
            host=self.host,
            port=self.port,
            uds=self.uds,
            api_key=self.api_key,
            max_request_bytes=self.max_request_bytes,
            uvicorn_log_level=self.log_level,
            disable_uvicorn_access_log=True,
            shutdown_timeout=self.shutdown_timeout,
        )

    def __post_init__(self) -> None:
        """Raises ConfigError for what the kinds of the flags do not show."""
        if any(not key.strip() for key in self.api_key):
            raise ConfigError("an API key is empty, so that everybody would have it", param="api_key", fix="Leave --api-key out, or give a key.")
