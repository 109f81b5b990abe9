"""Frames over a real socket: what was changed, repeated, left out or cut off is noticed."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from headway.engine.kv_transfer.frames import Frames, Kind
from headway.errors import TransferError

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    near, far = socket.socketpair()
    yield near, far
    near.close()
    far.close()


def frames(end: socket.socket, *, produces: bool, seconds: float = 30, key: bytes = b"") -> Frames:
    made = Frames(end, time.monotonic() + seconds, produces=produces)
    made.secure(key)
    return made


def recorded(*bodies: bytes, key: bytes = b"") -> list[bytes]:
    """The bytes of frames of a producer, one after the other."""
    near, far = socket.socketpair()
    sender = frames(near, produces=True, key=key)
    wires = []
    for body in bodies:
        sender.send(Kind.BLOCKS, body)
        wires.append(far.recv(65536))
    near.close()
    far.close()
    return wires


def received(end: socket.socket, count: int, length: int, key: bytes = b"") -> list[bytes]:
    reader = frames(end, produces=False, key=key)
    bodies = []
    for _ in range(count):
        body = bytearray(length)
        reader.receive_into(Kind.BLOCKS, memoryview(body))
        bodies.append(bytes(body))
    return bodies


def test_what_is_sent_comes(ends: Ends) -> None:
    for wire in recorded(b"abc", b"def", key=b"k"):
        ends[0].sendall(wire)
    assert received(ends[1], 2, 3, key=b"k") == [b"abc", b"def"]
    frames(ends[0], produces=True).send_json(Kind.GRANT, {"blocks": 3})
    assert frames(ends[1], produces=False).receive_json(Kind.GRANT, Kind.REFUSED, most=100) == (Kind.GRANT, {"blocks": 3})


@pytest.mark.parametrize("place", range(28))
def test_every_byte_counts(ends: Ends, place: int) -> None:
    (wire,) = recorded(b"abc", key=b"k")
    assert len(wire) == 28
    ends[0].sendall(wire[:place] + bytes([wire[place] ^ 0x10]) + wire[place + 1 :])
    with pytest.raises(TransferError) as failed:
        received(ends[1], 1, 3, key=b"k")
    assert failed.value.reason == "frame_damaged"


def test_frames_cannot_be_exchanged_repeated_or_sent_back(ends: Ends) -> None:
    first, second = recorded(b"abc", b"def")
    for stream in (second, first + first):
        near, far = socket.socketpair()
        near.sendall(stream)
        with pytest.raises(TransferError, match="tag"):
            received(far, 2, 3)
        near.close()
        far.close()
    ends[0].sendall(first)
    with pytest.raises(TransferError, match="tag"):
        frames(ends[1], produces=True).receive_into(Kind.BLOCKS, memoryview(bytearray(3)))


def test_another_key_makes_other_tags(ends: Ends) -> None:
    ends[0].sendall(recorded(b"abc", key=b"one")[0])
    with pytest.raises(TransferError, match="tag"):
        received(ends[1], 1, 3, key=b"two")


def test_the_end_and_silence_are_told_apart(ends: Ends) -> None:
    ends[0].sendall(recorded(b"abc")[0][:10])
    with pytest.raises(TransferError) as failed:
        frames(ends[1], produces=False, seconds=0.05).receive_into(Kind.BLOCKS, memoryview(bytearray(3)))
    assert failed.value.reason == "timed_out"
    ends[0].close()
    with pytest.raises(TransferError) as failed:
        received(ends[1], 1, 3)
    assert failed.value.reason == "peer_closed"


def test_lengths_are_limited_before_memory_is_taken(ends: Ends) -> None:
    ends[0].sendall(struct.pack(">4sBI", b"HWKV", Kind.HELLO, 2**32 - 1))
    with pytest.raises(TransferError) as failed:
        frames(ends[1], produces=False).receive_json(Kind.HELLO, most=4096)
    assert failed.value.reason == "frame_too_large"


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b"[" * 4000])
def test_bodies_are_objects(ends: Ends, body: bytes) -> None:
    frames(ends[0], produces=True).send(Kind.HELLO, body)
    with pytest.raises(TransferError, match="no JSON object"):
        frames(ends[1], produces=False).receive_json(Kind.HELLO, most=4096)
