"""Addresses, and what a probe of one says in the words that people search for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headway.doctor.collect import network
from headway.doctor.collect.network import Address, base_url, is_here, parse_address, probe
from headway.doctor.collect.transcript import Transcript
from headway.errors import DoctorError
from tests.doctor.collect.web import answering


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.2:9000", Address("10.0.0.2", 9000)),
        ("host", Address("host", 8000)),
        ("http://host/v1", Address("host", 80)),
        ("https://user:pw@host/v1", Address("host", 443)),
        ("https://host:8443/v1/models", Address("host", 8443)),
        ("[::1]:9000", Address("::1", 9000)),
        ("::1", Address("::1", 8000)),
    ],
)
def test_forms_of_an_address(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":80", "host:port", "host:0", "host:70000", "a::::", "two words:80", "http://"])
def test_no_address(text: str) -> None:
    with pytest.raises(DoctorError) as caught:
        parse_address(text)
    assert caught.value.reason == "address_invalid"


@pytest.mark.parametrize(
    ("text", "url"),
    [("localhost", "http://localhost:8000"), ("::1", "http://[::1]:8000"), ("https://h/v1/", "https://h"), ("h:9/proxy", "http://h:9/proxy"), ("http://h", "http://h")],
)
def test_the_url_of_a_client(text: str, url: str) -> None:
    assert base_url(text) == url


def said(host: str, port: int) -> str:
    transcript = Transcript()
    probe(Address(host, port), transcript)
    return "\n".join(transcript.lines)


@contextmanager
def speaking(answer: bytes) -> Iterator[int]:
    """A port that answers every connection with these bytes, after it has read something."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(1000)
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = said("127.0.0.1", port)
    assert "Connection refused ([Errno 111])" in text
    assert f"no process of this machine listens on port {port}" in text


def test_a_name_that_nobody_has() -> None:
    assert "Could not resolve host: nobody.invalid" in said("nobody.invalid", 80)
    assert "Could not resolve host" in said("a" * 70 + ".example", 80)


def test_a_packet_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full queue of connections answers nothing, as a firewall does."""
    monkeypatch.setattr(network, "_CONNECT_SECONDS", 0.2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        place = server.getsockname()
        held = [socket.socket() for _ in range(4)]
        for client in held:
            client.setblocking(False)
            client.connect_ex(place)
        try:
            assert "after 200 ms: Connection timed out" in said("127.0.0.1", place[1])
        finally:
            for client in held:
                client.close()


def test_http() -> None:
    with answering({"/health": (200, "")}) as url:
        text = said("127.0.0.1", int(url.rsplit(":", 1)[1]))
    assert "Connected to 127.0.0.1 port" in text
    assert "GET /health: HTTP/1.0 200 OK" in text or "GET /health: HTTP/1.1 200 OK" in text
    assert "is held by pid" in text


def test_something_else() -> None:
    with speaking(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        assert "the port answers something that is not HTTP" in said("127.0.0.1", port)


def test_an_own_address() -> None:
    assert is_here("localhost")
    assert not is_here("192.0.2.77")
    assert not is_here("nobody.invalid")
