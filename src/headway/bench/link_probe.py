"""How long messages take between two hosts over TCP: an echo at one end, a clock at the other. The figures are for `headway plan --cluster`."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from statistics import median
from typing import Final

from headway.errors import HeadwayError

SIZES: Final = (0, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)  # bytes
MOST_BYTES: Final = 1 << 26  # of one message
_HELLO: Final = b"headway-link/1\n"
_HEADER: Final = 8  # bytes of a length, big-endian
_SECONDS_PER_SIZE: Final = 0.3
_MOST_ROUNDS: Final = 200
_FEWEST_ROUNDS: Final = 5
_SILENCE: Final = 30.0  # seconds until a peer that says nothing is given up


class LinkProbeError(HeadwayError):
    """The other end of the link cannot be reached, or does not answer as it should."""

    reason = "link_probe_failed"


def echo(listener: socket.socket, connections: int = 1) -> None:
    """Answer `connections` peers, one after the other, each message with itself. A peer that says anything else, or nothing for 30 s, is hung up on."""
    for _ in range(connections):
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError, LinkProbeError):
            _prepare(peer)
            if _receive(peer, len(_HELLO)) != _HELLO:
                continue
            peer.sendall(_HELLO)
            while True:
                size = int.from_bytes(_receive(peer, _HEADER), "big")
                if size > MOST_BYTES:
                    break
                peer.sendall(_receive(peer, size) if size else b"\0")


def measure_link(address: tuple[str, int], on_size: Callable[[int], None] = lambda size: None) -> list[tuple[int, float]]:
    """(bytes, seconds one way) for each of `SIZES`: half of the median of there and back.

    Raises LinkProbeError.
    """
    try:
        with socket.create_connection(address, timeout=_SILENCE) as peer:
            _prepare(peer)
            peer.sendall(_HELLO)
            if _receive(peer, len(_HELLO)) != _HELLO:
                raise LinkProbeError(f"{address[0]}:{address[1]} is no `headway bench link --listen`")
            return [(size, _one_way(peer, size, on_size)) for size in SIZES]
    except OSError as error:
        raise LinkProbeError(f"{address[0]}:{address[1]}: {error}", fix="Start `headway bench link --listen HOST:PORT` there, and check the port.") from None


def _one_way(peer: socket.socket, size: int, on_size: Callable[[int], None]) -> float:
    message = size.to_bytes(_HEADER, "big") + bytes(size)
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < _FEWEST_ROUNDS or (len(taken) < _MOST_ROUNDS and time.perf_counter() - began < _SECONDS_PER_SIZE):
        sent = time.perf_counter()
        peer.sendall(message)
        _receive(peer, max(size, 1))
        taken.append(time.perf_counter() - sent)
    on_size(size)
    return median(taken) / 2


def _prepare(peer: socket.socket) -> None:
    peer.settimeout(_SILENCE)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _receive(peer: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes. Raises LinkProbeError when the peer ends before."""
    buffer = bytearray(size)
    view, got = memoryview(buffer), 0
    while got < size:
        count = peer.recv_into(view[got:])
        if count == 0:
            raise LinkProbeError("the other end of the link closed the connection")
        got += count
    return bytes(buffer)
