"""The channel over real sockets."""

from __future__ import annotations

import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

from headway.distributed import control_channel
from headway.distributed.control_channel import ControlChannel, ControlListener, connect

KEY = b"k" * 32


def met() -> tuple[ControlChannel, ControlChannel]:
    listener = ControlListener("127.0.0.1", 0, KEY)
    found: list[ControlChannel | None] = []
    thread = threading.Thread(target=lambda: found.append(listener.accept()))
    thread.start()
    ours = connect("127.0.0.1", listener.port, KEY, 30)
    thread.join(30)
    listener.close()
    assert found[0] is not None
    return ours, found[0]


def test_messages_come_in_order() -> None:
    ours, theirs = met()
    for number in range(100):
        ours.send(str(number).encode())
    assert [theirs.receive() for _ in range(100)] == [str(number).encode() for number in range(100)]
    theirs.send(b"x" * 1_000_000)
    assert len(ours.receive()) == 1_000_000


def test_closing_wakes_both_ends() -> None:
    ours, theirs = met()
    ended: list[type[BaseException]] = []

    def wait(channel: ControlChannel) -> None:
        try:
            channel.receive()
        except (EOFError, OSError) as error:
            ended.append(type(error))

    threads = [threading.Thread(target=wait, args=(channel,)) for channel in (ours, theirs)]
    for thread in threads:
        thread.start()
    ours.close()
    for thread in threads:
        thread.join(30)
    assert len(ended) == 2


def test_strangers_are_turned_away() -> None:
    listener = ControlListener("127.0.0.1", 0, KEY)
    found: list[ControlChannel | None] = []
    thread = threading.Thread(target=lambda: found.extend(listener.accept() for _ in range(2)))
    thread.start()
    with pytest.raises(AuthenticationError):
        Client(("127.0.0.1", listener.port), family="AF_INET", authkey=b"another key")
    ours = connect("127.0.0.1", listener.port, KEY, 30)
    thread.join(30)
    listener.close()
    assert found[0] is None
    assert found[1] is not None
    ours.send(b"hello")
    assert found[1].receive() == b"hello"


def test_a_message_that_is_too_long_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = met()
    monkeypatch.setattr(control_channel, "MOST_BYTES", 100)
    ours.send(b"x" * 101)
    with pytest.raises(OSError, match="bad message length"):
        theirs.receive()


def test_nobody_listens() -> None:
    listener = ControlListener("127.0.0.1", 0, KEY)
    port = listener.port
    listener.close()
    with pytest.raises(ConnectionError):
        connect("127.0.0.1", port, KEY, 0.0)
