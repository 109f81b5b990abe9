"""ServeSettings: what the command line says about one router process."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headway.errors import ConfigError
from headway.router.config.document.document import Document
from headway.router.config.document.listeners import Listener
from headway.router.config.document.services import ManagementAPI, Metrics
from headway.router.process.overrides import Overrides

DEFAULT_LISTENER_PORT = 8899
DEFAULT_MANAGEMENT_PORT = 8080
DEFAULT_METRICS_PORT = 9190
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """`config` is the file that is served and watched. `state` is a private folder for what outlives the process. Ports that the configuration
    names are moved by `port_offset`, so that several routers can run on one machine. `startup_timeout` and `drain` are in seconds."""

    config: Path
    state: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    startup_timeout: float = 1800.0
    drain: float = 10.0
    log_level: str = "INFO"
    port_offset: int = 0
    overrides: Overrides = field(default_factory=Overrides)


@dataclass(frozen=True, slots=True)
class Address:
    """Where one server of the process listens; `name` is the listener's, or management, or metrics."""

    name: str
    host: str
    port: int
    listener: Listener | None = None

    @property
    def port_key(self) -> str:
        """Where the configuration says the port."""
        if self.listener is not None:
            return f'the port of listener "{self.name}"'
        return "global.services.management_api.port" if self.name == "management" else "global.services.observability.metrics.port"


def addresses(document: Document, settings: ServeSettings) -> list[Address]:
    """The public listeners, then management and metrics. Raises ConfigError for a management address that others can reach without a token."""
    found = [
        Address(listener.name or "default", listener.address or LOOPBACK, (listener.port or DEFAULT_LISTENER_PORT) + settings.port_offset, listener)
        for listener in document.listeners or [Listener(name="default", port=DEFAULT_LISTENER_PORT)]
    ]
    services = document.global_.services if document.global_ else None
    management = services.management_api if services else None
    host = (management.bind_address if management else None) or LOOPBACK
    port = (management.port if management else None) or DEFAULT_MANAGEMENT_PORT
    _require_protected(host, management)
    found.append(Address("management", host, port + settings.port_offset))
    observability = services.observability if services else None
    metrics = (observability.metrics if observability else None) or Metrics()
    if metrics.enabled:
        found.append(Address("metrics", metrics.bind_address or LOOPBACK, (metrics.port or DEFAULT_METRICS_PORT) + settings.port_offset))
    return found


def _require_protected(host: str, management: ManagementAPI | None) -> None:
    if host in ("localhost", "") or _is_loopback(host):
        return
    where = "global.services.management_api"
    if management is None or not management.remote_exposure:
        raise ConfigError(f"{where}.bind_address {host} can be reached from other machines", param=where, fix="Set remote_exposure: true as well, or leave it on 127.0.0.1.")
    if management.auth is None or management.auth.mode != "bearer" or not management.auth.tokens:
        raise ConfigError(f"{where} is open to other machines and asks for no token", param=where, fix="Set auth.mode: bearer with auth.tokens.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
