"""Address: where a model runtime answers, over TCP or a Unix socket."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from headway.errors import ConfigError

_UNIX = "unix://"


@dataclass(frozen=True, slots=True)
class Address:
    """`origin` is what URLs begin with; `socket` the path of the Unix socket that the connection goes through."""

    origin: str
    socket: str | None = None

    def __str__(self) -> str:
        return self.origin if self.socket is None else f"{_UNIX}{self.socket}"


def address_of(endpoint: str) -> Address:
    """`http(s)://host[:port][/prefix]` or `unix:///path`. Raises ConfigError, reason `endpoint_invalid`."""
    if endpoint.startswith(_UNIX):
        path = endpoint.removeprefix(_UNIX)
        if not path.startswith("/") or path == "/" or "\0" in path:
            raise _wrong(endpoint)
        return Address("http://runtime", path)
    try:
        parts = urlsplit(endpoint)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right or parts.username is not None or parts.query or parts.fragment or not endpoint.isprintable() or " " in endpoint:
        raise _wrong(endpoint)
    return Address(endpoint.rstrip("/"))


def _wrong(endpoint: str) -> ConfigError:
    shown = "one with a user name in it" if "@" in endpoint else repr(endpoint[:100])  # a password may follow
    return ConfigError(f"endpoint must be http(s)://host:port or unix:///path, found {shown}", reason="endpoint_invalid", param="endpoint")
