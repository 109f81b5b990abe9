"""Frames on a TCP connection: a head, a body of known length, and a tag over both that nobody without the key can make.

head = magic "HWKV", kind (1 byte), length of the body (4 bytes, big endian); tag = keyed BLAKE2b of 16 bytes over direction, number of the
frame, head and body. Without a key the tag is a checksum. Frames of one connection cannot be left out, repeated or exchanged.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from headway.errors import TransferError

T = TypeVar("T")
_HEAD: Final = struct.Struct(">4sBI")
_PLACE: Final = struct.Struct(">BQ")
_MAGIC: Final = b"HWKV"
_TAG: Final = 16


class Kind(enum.IntEnum):
    HELLO = 1  # producer: version, engine, nonce
    PROOF = 2  # consumer: nonce, proof of the key
    WELCOME = 3
    ASK = 4  # consumer: lease, layout, hashes
    GRANT = 5  # producer: how many blocks follow
    BLOCKS = 6
    DONE = 7  # consumer: all is here
    REFUSED = 8  # producer: why not


class Frames:
    """One end of a connection. `deadline` on time.monotonic bounds everything that is sent and received."""

    def __init__(self, connection: socket.socket, deadline: float, *, produces: bool):
        self._socket = connection
        self.deadline = deadline
        self._out, self._in = (0, 1) if produces else (1, 0)
        self._sent = self._received = 0
        self._key = b""

    def secure(self, key: bytes) -> None:
        """Tag frames with `key` from now on, in both directions. At most 64 bytes."""
        self._key = key

    def send(self, kind: Kind, body: bytes | memoryview) -> None:
        """Raises TransferError."""
        head = _HEAD.pack(_MAGIC, kind, len(body))
        tag = self._tag(self._out, self._sent, head, body)
        self._sent += 1
        for part in (head, body, tag):
            self._within(self._socket.sendall, part)

    def send_json(self, kind: Kind, value: Mapping[str, Any]) -> None:
        self.send(kind, json.dumps(value, separators=(",", ":")).encode())

    def receive_json(self, *expected: Kind, most: int) -> tuple[Kind, dict[str, Any]]:
        """A body of at most `most` bytes that is a JSON object. Raises TransferError."""
        kind, length, head = self._head(expected)
        if length > most:
            raise TransferError(f"a frame of {length} bytes came where at most {most} are expected", reason="frame_too_large")
        body = bytearray(length)
        self._body(head, memoryview(body))
        try:
            value = json.loads(bytes(body))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise TransferError("a frame holds no JSON object", reason="frame_damaged")
        return kind, value

    def receive_into(self, kind: Kind, body: memoryview) -> None:
        """A body of exactly that many bytes. Raises TransferError."""
        _, length, head = self._head((kind,))
        if length != len(body):
            raise TransferError(f"a frame of {length} bytes came where {len(body)} are expected", reason="frame_damaged")
        self._body(head, body)

    def _head(self, expected: tuple[Kind, ...]) -> tuple[Kind, int, bytes]:
        head = bytearray(_HEAD.size)
        self._fill(memoryview(head))
        magic, number, length = _HEAD.unpack(head)
        if magic != _MAGIC:
            raise TransferError("what came is no frame of a KV transfer", reason="frame_damaged")
        if number not in tuple(expected):
            raise TransferError(f"a frame of kind {number} came where {' or '.join(kind.name for kind in expected)} is expected", reason="frame_damaged")
        return Kind(number), length, bytes(head)

    def _body(self, head: bytes, body: memoryview) -> None:
        tag = bytearray(_TAG)
        self._fill(body)
        self._fill(memoryview(tag))
        # A checksum and, with a key, a proof; comparing in constant time costs nothing here.
        if not hmac.compare_digest(bytes(tag), self._tag(self._in, self._received, head, body)):
            raise TransferError("the tag of a frame is wrong: it was damaged or forged", reason="frame_damaged")
        self._received += 1

    def _fill(self, view: memoryview) -> None:
        while view:
            count = self._within(self._socket.recv_into, view)
            if count == 0:
                raise TransferError("the peer closed the connection", reason="peer_closed")
            view = view[count:]

    def _within(self, act: Callable[[Any], T], data: bytes | memoryview) -> T:
        """`act(data)`, in what is left of the time."""
        left = self.deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            return act(data)
        except TimeoutError:
            raise TransferError("the peer took too long", reason="timed_out") from None
        except OSError as error:
            raise TransferError(f"the connection broke: {error.strerror or type(error).__name__}", reason="peer_closed") from None

    def _tag(self, direction: int, number: int, head: bytes, body: bytes | memoryview | bytearray) -> bytes:
        digest = hashlib.blake2b(_PLACE.pack(direction, number), digest_size=_TAG, key=self._key)
        digest.update(head)
        digest.update(body)
        return digest.digest()

