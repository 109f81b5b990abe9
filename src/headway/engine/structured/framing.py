"""Messages between the engine and its compiling process: eight bytes of length, then the bytes."""

from __future__ import annotations

import socket
import struct
from typing import Final

_LENGTH: Final = struct.Struct("<Q")


def send(link: socket.socket, message: bytes) -> None:
    link.sendall(_LENGTH.pack(len(message)))
    link.sendall(message)


def receive(link: socket.socket, most: int) -> bytes | None:
    """None when the other side ended before the message was complete, or announces more than `most` bytes."""
    head = _exactly(link, _LENGTH.size)
    if head is None:
        return None
    length: int = _LENGTH.unpack(head)[0]
    return None if length > most else _exactly(link, length)


def _exactly(link: socket.socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = link.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
