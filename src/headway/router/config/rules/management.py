"""Rules about the management address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document


def management_exposure(document: Document) -> Iterator[Diagnostic]:
    """Who reaches it can read and change the configuration."""
    services = document.global_.services if document.global_ else None
    management = services.management_api if services else None
    if management is None or _is_loopback(management.bind_address):
        return
    if management.auth is None or management.auth.mode != "bearer":
        message = f"the management address {management.bind_address} can be reached from outside, and asks for no token"
        fix = "Set auth.mode: bearer with tokens, or bind it to 127.0.0.1"
        yield Diagnostic("management_open", message, ("global", "services", "management_api"), fix, severity="warning")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
