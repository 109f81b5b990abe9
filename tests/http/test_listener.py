"""Taking the address to listen on."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from headway.errors import ConfigError
from headway.http.listener import listen
from headway.http.settings import HttpSettings


def test_connections_are_taken_before_anything_serves() -> None:
    listener = listen(HttpSettings(port=0))
    try:
        assert listener.url == f"http://127.0.0.1:{listener.port}"
        with socket.create_connection(("127.0.0.1", listener.port or 0), timeout=5):
            pass
    finally:
        listener.close()


def test_a_port_in_use_names_its_owner() -> None:
    first = listen(HttpSettings(port=0))
    try:
        with pytest.raises(ConfigError, match=f"Port {first.port} on 127.0.0.1 is in use by process {os.getpid()}") as found:
            listen(HttpSettings(port=first.port or 0))
        assert found.value.reason == "port_in_use"
        assert f"headway stop --pid {os.getpid()}" in found.value.message
    finally:
        first.close()


@pytest.mark.parametrize("settings", [{"host": "no.such.host.invalid"}, {"host": "192.0.2.1"}, {"port": 70_000}])
def test_addresses_that_are_none(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as found:
        listen(HttpSettings(**{"port": 0, **settings}))  # type: ignore[arg-type]
    assert found.value.reason == "address_invalid"


def test_all_interfaces_are_shown_as_this_machine() -> None:
    listener = listen(HttpSettings(host="0.0.0.0", port=0))
    assert listener.url.startswith("http://127.0.0.1:")
    listener.close()


def test_a_unix_socket_is_private_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    listener = listen(HttpSettings(uds=str(path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert listener.url == f"http+unix://{path}"
    with pytest.raises(ConfigError, match="in use"):
        listen(HttpSettings(uds=str(path)))
    listener.close()
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    listener = listen(HttpSettings(uds=str(path)))
    listener.close()


def test_a_file_in_the_place_of_a_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError) as found:
        listen(HttpSettings(uds=str(path)))
    assert (found.value.reason, path.read_text()) == ("socket_invalid", "mine")
