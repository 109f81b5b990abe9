"""Is HOST:PORT reachable from here, and what speaks there? Name, connection, TLS or not, HTTP."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import psutil

from headway.doctor.collect.host import listeners
from headway.doctor.collect.transcript import Transcript
from headway.errors import DoctorError

_CONNECT_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int


def parse_address(text: str, default_port: int = 8000) -> Address:
    """`HOST:PORT`, `[::1]:PORT`, `HOST`, or a URL. Raises DoctorError (`address_invalid`)."""
    plain = text.split("://", 1)[-1].split("/", 1)[0].rsplit("@", 1)[-1]
    default = 443 if text.startswith("https://") else 80 if text.startswith("http://") else default_port
    if plain.startswith("["):
        host, _, rest = plain[1:].partition("]")
        port = rest.lstrip(":")
    elif plain.count(":") > 1 and _is_ipv6(plain):
        host, port = plain, ""
    else:
        host, _, port = plain.partition(":")
    if not host or any(letter.isspace() for letter in host) or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise DoctorError(f"{text[:80]!r} is no address", reason="address_invalid", fix="Give HOST:PORT, such as 10.0.0.2:8000.")
    return Address(host, int(port) if port else default)


def base_url(text: str, default_port: int = 8000) -> str:
    """What a client is given, without the path of the API: `http://host:port`. Raises DoctorError (`address_invalid`)."""
    plain = text.rstrip("/").removesuffix("/v1")
    address = parse_address(plain, default_port)
    if "://" in plain:
        return plain
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}" + "".join(f"/{step}" for step in plain.split("/")[1:])


def _is_ipv6(text: str) -> bool:
    try:
        return ip_address(text).version == 6
    except ValueError:
        return False


def probe(address: Address, transcript: Transcript) -> bool:
    """Every address that the name has, in turn; the first that accepts is asked what it speaks. True when one did."""
    host, port = address.host, address.port
    start = time.perf_counter()
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        transcript.say(f"Could not resolve host: {host} ([Errno {error.errno}] {error.strerror})")
        return False
    except UnicodeError as error:  # a label of more than 63 letters
        transcript.say(f"Could not resolve host: {host[:80]} ({error})")
        return False
    ips = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    transcript.say(f"resolve {host}: {', '.join(ips)} in {(time.perf_counter() - start) * 1e3:.1f} ms")
    accepted = [entry for entry in found if _accepts(entry, transcript)]
    for line in _owners(port, ips):
        transcript.say(line)
    if not accepted:
        return False
    _speaks(accepted[0][4][:2], host, transcript)
    return True


_Entry = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def _accepts(entry: _Entry, transcript: Transcript) -> bool:
    family, kind, protocol, _, place = entry
    shown = f"{place[0]!s} port {place[1]!s}"  # in the words of curl, which rules and people know
    start = time.perf_counter()
    with socket.socket(family, kind, protocol) as client:
        client.settimeout(_CONNECT_SECONDS)
        try:
            client.connect(place)
        except TimeoutError:
            transcript.say(f"Failed to connect to {shown} after {_CONNECT_SECONDS * 1000:.0f} ms: Connection timed out")
            return False
        except OSError as error:
            transcript.say(f"Failed to connect to {shown}: {error.strerror} ([Errno {error.errno}])")
            return False
    transcript.say(f"Connected to {shown} in {(time.perf_counter() - start) * 1e3:.1f} ms")
    return True


def is_here(host: str) -> bool:
    """Whether a name or address is this machine's."""
    try:
        ips = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {entry.address.split("%")[0] for entries in psutil.net_if_addrs().values() for entry in entries}
    return bool(ips & own) or any(ip.startswith("127.") for ip in ips)


def _owners(port: int, ips: list[str]) -> list[str]:
    """Who listens on that port of this machine, when the address is one of this machine's."""
    if not any(is_here(ip) for ip in ips):
        return []
    found = [entry for entry in listeners() if entry["port"] == port]
    if not found:
        return [f"no process of this machine listens on port {port}"]
    return [
        f"port {port} of this machine: {entry['address']} is held by pid {entry.get('pid', 'unknown')}"
        + (f" ({entry['command']}), started {entry['age_s']} s ago" if entry.get("command") else "")
        for entry in found
    ]


def _speaks(place: tuple[str | int, int | bytes], host: str, transcript: Transcript) -> None:
    plain = _first_bytes(place, None)
    if plain.startswith(b"HTTP/"):
        transcript.say(f"GET /health: {_status_line(plain)}")
        if b"plain HTTP request was sent to HTTPS port" not in plain:
            return
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    secure = _first_bytes(place, context, host)
    if secure.startswith(b"HTTP/"):
        transcript.say(f"this port speaks TLS: GET /health over https: {_status_line(secure)}")
    elif not plain:
        transcript.say("the port accepts connections and answers neither http nor https within 5 s")
    elif not plain.startswith(b"HTTP/"):
        transcript.say("the port answers something that is not HTTP")


def _first_bytes(place: tuple[str | int, int | bytes], tls: ssl.SSLContext | None, host: str = "localhost") -> bytes:
    """The start of an answer to GET /health, b"" when there is none."""
    try:
        with socket.create_connection((str(place[0]), int(place[1])), timeout=_CONNECT_SECONDS) as client:
            client.settimeout(_ANSWER_SECONDS)
            channel = client if tls is None else tls.wrap_socket(client, server_hostname=host)
            with channel:
                channel.sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                return channel.recv(2048)
    except (OSError, ValueError):
        return b""


def _status_line(answer: bytes) -> str:
    return answer.split(b"\r\n", 1)[0].decode("latin-1")
