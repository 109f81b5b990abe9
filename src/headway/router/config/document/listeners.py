"""Listeners of a configuration document."""

from __future__ import annotations

from headway.router.config.document.node import Node


class ListenerTLS(Node):
    cert_file: str | None = None
    key_file: str | None = None


class ListenerSystemOne(Node):
    models: list[str] | None = None
    max_deadline_ms: int | None = None


class ListenerIdentity(Node):
    trust_headers: bool | None = None
    trusted_peers: list[str] | None = None


class Listener(Node):
    name: str | None = None
    address: str | None = None
    port: int | None = None
    timeout: str | None = None
    api_keys: list[str] | None = None
    models: list[str] | None = None
    systemone: ListenerSystemOne | None = None
    tls: ListenerTLS | None = None
    identity: ListenerIdentity | None = None
