"""The socket that the server listens on, taken before anything slow begins."""

from __future__ import annotations

import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

import psutil

from headway.errors import ConfigError
from headway.http.settings import HttpSettings

_BACKLOG = 2048
_ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket. `url` is where this machine reaches it, `http+unix:` for a Unix socket."""

    socket: socket.socket
    url: str
    port: int | None = None
    uds: str | None = None

    def close(self) -> None:
        self.socket.close()
        if self.uds is not None:
            Path(self.uds).unlink(missing_ok=True)


def listen(settings: HttpSettings) -> Listener:
    """Raises ConfigError: `port_in_use` naming the owner if it can be known, `address_invalid`, `socket_invalid`."""
    if settings.uds is not None:
        return _listen_unix(settings.uds)
    return _listen_tcp(settings.host, settings.port, "http" if settings.ssl_certfile is None else "https")


def _listen_tcp(host: str, port: int, scheme: str) -> Listener:
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port {port} is not between 0 and 65535", reason="address_invalid", param="port")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as e:
        raise ConfigError(
            f"--host {host!r} --port {port} is no address: {e}", reason="address_invalid", param="host"
        ) from e
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as e:
        sock.close()
        raise _cannot_bind(e, host, port) from e
    taken = sock.getsockname()[1]
    shown = _ANY.get(host) or (f"[{host}]" if ":" in host else host or "127.0.0.1")
    return Listener(sock, f"{scheme}://{shown}:{taken}", port=taken)


def _cannot_bind(error: OSError, host: str, port: int) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        owner = _owner(port)
        fix = "Choose another --port, or stop the other one" + (f": headway stop --pid {owner[0]}." if owner else ".")
        by = f" by process {owner[0]} ({owner[1]})" if owner else ""
        return ConfigError(f"Port {port} on {host} is in use{by}", reason="port_in_use", param="port", fix=fix)
    if error.errno == errno.EACCES:
        fix = "Choose a --port from 1024 on."
        return ConfigError(
            f"Port {port} needs more rights than this user has", reason="address_invalid", param="port", fix=fix
        )
    return ConfigError(f"Cannot listen on {host} port {port}: {error.strerror}", reason="address_invalid", param="host")


def _owner(port: int) -> tuple[int, str] | None:
    """(pid, name) of who listens on `port`, if this user may know."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return connection.pid, psutil.Process(connection.pid).name()
    except psutil.Error:
        return None
    return None


def _listen_unix(path: str) -> Listener:
    """A socket that only this user may use. A file left by a server that was killed is replaced."""
    place = Path(path)
    if place.exists() and not stat.S_ISSOCK(place.stat().st_mode):
        raise ConfigError(
            f"--uds {path!r} exists and is no socket", reason="socket_invalid", param="uds", fix="Choose another path."
        )
    if place.exists() and _answers(path):
        raise ConfigError(
            f"--uds {path!r} is in use by another server", reason="port_in_use", param="uds", fix="Choose another path."
        )
    place.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(path)
        sock.listen(_BACKLOG)
    except OSError as e:
        sock.close()
        raise ConfigError(f"Cannot listen on --uds {path!r}: {e}", reason="socket_invalid", param="uds") from e
    finally:
        os.umask(mask)
    return Listener(sock, f"http+unix://{place.absolute()}", uds=str(place.absolute()))


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
