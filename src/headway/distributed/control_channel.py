"""ControlChannel: messages between rank 0 and another rank, in order, over an authenticated connection.

Bytes, not objects: nothing that comes from the network is unpickled. Whoever connects must know the key (HMAC, by
`multiprocessing.connection`). Tensors do not travel here.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Final

MOST_BYTES: Final = 64 << 20  # of one message


class ControlChannel:
    """One end. Several threads may send; one receives."""

    def __init__(self, connection: Connection):
        self._connection = connection
        self._sending = threading.Lock()
        with contextlib.suppress(OSError), socket.socket(fileno=socket.dup(connection.fileno())) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a command must not wait for the next one
        self.last_heard = time.monotonic()

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self._connection.fileno()

    def send(self, message: bytes) -> None:
        """Raises OSError when the other end is gone."""
        with self._sending:
            self._connection.send_bytes(message)

    def receive(self) -> bytes:
        """The next message. Raises EOFError or OSError when the other end is gone, or sends more than MOST_BYTES."""
        message = self._connection.recv_bytes(MOST_BYTES)
        self.last_heard = time.monotonic()
        return message

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self.last_heard

    def close(self) -> None:
        """Wakes whoever receives at either end."""
        with contextlib.suppress(OSError), socket.socket(fileno=socket.dup(self._connection.fileno())) as same:
            same.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._connection.close()


class ControlListener:
    """Where ranks report to rank 0."""

    def __init__(self, host: str, port: int, key: bytes):
        """Port 0 = a free one. Raises OSError when it cannot listen there."""
        self._listener = Listener((host, port), family="AF_INET", backlog=64, authkey=key)

    @property
    def port(self) -> int:
        return int(self._listener.address[1])

    def accept(self) -> ControlChannel | None:
        """The next one that knows the key; None for one that does not. Raises OSError once it is closed."""
        try:
            return ControlChannel(self._listener.accept())
        except (AuthenticationError, EOFError, ConnectionError):
            return None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener._listener._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            self._listener.close()


def connect(host: str, port: int, key: bytes, timeout_seconds: float) -> ControlChannel:
    """To the listener of rank 0, which may come later than we do. Raises OSError or AuthenticationError at the end of the time."""
    end = time.monotonic() + timeout_seconds
    while True:
        try:
            return ControlChannel(Client((host, port), family="AF_INET", authkey=key))
        except (ConnectionError, EOFError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
