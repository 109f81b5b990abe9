"""The link probe over real sockets: what is measured, and peers that are none."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from headway.bench.link_probe import SIZES, LinkProbeError, echo, measure_link
from headway.cli.bench_link import link_command
from headway.errors import ConfigError


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def serve(listener: socket.socket, connections: int) -> threading.Thread:
    thread = threading.Thread(target=echo, args=(listener, connections), daemon=True)
    thread.start()
    return thread


def ended(peer: socket.socket) -> bool:
    """Closed, maybe with a reset because it had bytes that nobody read."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_every_size_has_its_time(listener: socket.socket) -> None:
    thread = serve(listener, 1)
    seen: list[int] = []
    points = measure_link(listener.getsockname(), seen.append)
    assert tuple(size for size, _ in points) == SIZES == tuple(seen)
    assert all(seconds > 0 for _, seconds in points)
    thread.join(30)
    assert not thread.is_alive()


def test_strangers_are_hung_up_on_and_the_next_is_answered(listener: socket.socket) -> None:
    serve(listener, 3)
    with socket.create_connection(listener.getsockname()) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n")
        stranger.settimeout(30)
        assert ended(stranger)
    with socket.create_connection(listener.getsockname()) as greedy:
        greedy.sendall(b"headway-link/1\n" + (1 << 40).to_bytes(8, "big"))
        greedy.settimeout(30)
        assert greedy.recv(15) == b"headway-link/1\n"
        assert ended(greedy)
    assert len(measure_link(listener.getsockname())) == len(SIZES)


def test_a_server_that_is_no_echo(listener: socket.socket) -> None:
    def answer() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n")
            peer.recv(100)

    threading.Thread(target=answer, daemon=True).start()
    with pytest.raises(LinkProbeError, match="is no `headway bench link") as error:
        measure_link(listener.getsockname())
    assert error.value.reason == "link_probe_failed"


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as made:
        address = made.getsockname()
    with pytest.raises(LinkProbeError, match="--listen"):
        measure_link(address)


def test_two_processes_measure_their_link() -> None:
    command = [sys.executable, "-m", "headway.cli.main", "bench", "link"]
    with subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        place = other.stderr.readline().split()[-1]
        done = CliRunner().invoke(link_command, ["--connect", place, "--json"], catch_exceptions=False)
        assert other.wait(60) == 0
    found = json.loads(done.stdout)
    assert found["bandwidth"] > 0
    assert [size for size, _ in found["measured"]] == list(SIZES)


def test_the_line_goes_into_a_description() -> None:
    import tomllib

    from headway.capacity.cluster.description import cluster_of

    shown = CliRunner().invoke(link_command, [], catch_exceptions=False).stdout
    cluster = cluster_of({"node": {"device": "h100", "devices": 2}, "link": tomllib.loads(shown)}, lambda path: {})
    assert cluster.inside.origin == "measured"


@pytest.mark.parametrize("words", [["--listen", "127.0.0.1"], ["--connect", "here:port"], ["--connect", "a:1", "--listen", "b:2"], ["--connect", "a:70000"]])
def test_addresses_that_are_none(words: list[str]) -> None:
    with pytest.raises(ConfigError):
        CliRunner().invoke(link_command, words, catch_exceptions=False)
