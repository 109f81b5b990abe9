"""Rules about the addresses of backends: what cannot be asked is refused, what is asked otherwise than it looks is told."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.document import Document
from headway.router.config.document.providers import BackendRef

_PORTS = {"http": 80, "https": 443}
_NO_PORT = -1  # what stands there is none
_FIX = "Write endpoint: host:port, endpoint: unix:///path, or base_url: http://host:port/v1"


def backend_addresses(document: Document) -> Iterator[Diagnostic]:
    for index, model in enumerate((document.providers.models if document.providers else None) or ()):
        for key in ("backend_refs", "prefill_refs"):
            for at, ref in enumerate(getattr(model, key) or ()):
                yield from _address(ref, ("providers", "models", index, key, at), model.name)


def _address(ref: BackendRef, place: Path, model: str) -> Iterator[Diagnostic]:
    given, key = (ref.endpoint, "endpoint") if ref.endpoint else (ref.base_url, "base_url")
    if not given or "$" in given:  # a provider that is known by its id, or a variable that is not set here
        return
    path = (*place, key)
    if given.startswith("unix://"):
        if not given.removeprefix("unix://").startswith("/"):
            yield Diagnostic("address_invalid", f'a backend of model "{model}" has the address {given!r:.100}, in which a socket needs an absolute path', path, _FIX)
        return
    scheme, port, host = _parts(given if "://" in given else f"{ref.protocol}://{given}")
    if scheme not in _PORTS or not host or port == _NO_PORT or any(letter.isspace() for letter in given):
        yield Diagnostic("address_invalid", f'a backend of model "{model}" has the address {given!r:.100}, which is no http or https address', path, _FIX)
    elif port is None and "://" not in given:
        message = f'a backend of model "{model}" has the {key} {given} without a port: port {_PORTS[scheme]} is asked'
        yield Diagnostic("endpoint_without_port", message, path, f"Write {host}:8000, or whatever its port is", severity="warning")
    elif key == "endpoint" and "://" in given:
        asked = given.rstrip("/") if urlsplit(given).path.strip("/") or ref.chat_path else f"{given.rstrip('/')}/v1"
        message = f'a backend of model "{model}" has an address with a scheme as its endpoint; it is read as base_url: {asked}'
        told = "" if port is not None else f", port {_PORTS[scheme]}"
        yield Diagnostic("endpoint_is_url", f"{message}{told}", path, "Write it as base_url", severity="warning")


def _parts(address: str) -> tuple[str, int | None, str]:
    """Scheme, port (None = not said) and host."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.port, parts.hostname or ""
    except ValueError:
        return "", _NO_PORT, ""
