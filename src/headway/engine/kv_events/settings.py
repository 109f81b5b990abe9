"""What --kv-events-config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol

from headway.errors import ConfigError

PUBLISHERS: Final = ("zmq", "null")
_SCHEMES: Final = ("tcp://", "ipc://", "inproc://")
_MOST: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class KVEventsSettings:
    """Names and defaults of vLLM; `bind` is an addition.

    Without `bind`, an endpoint with `*` or `::`, and ipc and inproc ones, are bound, and others are connected to. `buffer_steps` batches are
    kept for replays, `hwm` batches may wait for one slow subscriber, `max_queue_size` events for the publishing thread.
    """

    enable_kv_cache_events: bool = False
    publisher: str | None = None  # zmq unless said otherwise
    endpoint: str = "tcp://*:5557"
    replay_endpoint: str | None = None
    buffer_steps: int = 10_000
    hwm: int = 100_000
    max_queue_size: int = 100_000
    topic: str = ""
    bind: bool | None = None

    @property
    def publishes(self) -> bool:
        return self.enable_kv_cache_events and self.publisher != "null"

    @property
    def binds(self) -> bool:
        if self.bind is not None:
            return self.bind
        return "*" in self.endpoint or "::" in self.endpoint or self.endpoint.startswith(("ipc://", "inproc://"))


class EventFlags(Protocol):
    @property
    def enable_prefix_caching(self) -> bool: ...

    @property
    def kv_events_config(self) -> Mapping[str, Any]: ...


_KINDS: Final[Mapping[str, tuple[type, bool]]] = {
    "enable_kv_cache_events": (bool, False),
    "publisher": (str, True),
    "endpoint": (str, False),
    "replay_endpoint": (str, True),
    "buffer_steps": (int, False),
    "hwm": (int, False),
    "max_queue_size": (int, False),
    "topic": (str, False),
    "bind": (bool, True),
}
"""Of each key the type of its value, and whether null is one."""


def read_kv_events(config: Mapping[str, Any]) -> KVEventsSettings:
    """Raises ConfigError for keys that are not there and values that cannot be used."""
    if not isinstance(config, Mapping):
        raise _wrong(f"must be a JSON object, got {type(config).__name__}")
    for name, value in config.items():
        if name not in _KINDS:
            raise _wrong(f"has no {name!r:.100}; it takes {', '.join(field.name for field in fields(KVEventsSettings))}")
        kind, null = _KINDS[name]
        if not (value is None and null) and type(value) is not kind:
            raise _wrong(f"{name} must be a {kind.__name__}, got {value!r:.100}")
    settings = KVEventsSettings(**config)
    if settings.publisher not in (None, *PUBLISHERS):
        raise _wrong(f"publisher must be one of {', '.join(PUBLISHERS)}, got {settings.publisher!r:.100}")
    for name in ("endpoint", "replay_endpoint"):
        address = getattr(settings, name)
        if address is not None and not address.startswith(_SCHEMES):
            raise _wrong(f"{name} must begin with one of {', '.join(_SCHEMES)}, got {address!r:.100}")
    for name in ("buffer_steps", "hwm", "max_queue_size"):
        if not 1 <= getattr(settings, name) <= _MOST:
            raise _wrong(f"{name} must be from 1 to {_MOST}, got {getattr(settings, name)}")
    return settings


def check_kv_events(flags: EventFlags) -> None:
    """Raises ConfigError: events tell of the prefix cache, so there has to be one."""
    settings = read_kv_events(flags.kv_events_config)
    if settings.enable_kv_cache_events and not flags.enable_prefix_caching:
        raise ConfigError(
            "--kv-events-config asks for events of the prefix cache, which is off", param="kv_events_config", fix="Leave --no-enable-prefix-caching out."
        )


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"--kv-events-config {what}", param="kv_events_config")
