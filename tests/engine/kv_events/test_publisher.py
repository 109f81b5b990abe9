"""A publisher over real sockets: numbering, replays, many subscribers, and one that does not read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import zmq

from headway.engine.kv_events.publisher import EventPublisher, shifted
from headway.engine.kv_events.recorder import EventRecorder
from headway.engine.kv_events.settings import KVEventsSettings, read_kv_events
from headway.errors import ConfigError
from headway.kvcache.block_hash import root_hash

END = b"\xff" * 8


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def publisher(**fields: Any) -> Iterator[tuple[EventRecorder, EventPublisher, str]]:
    replay = free_address()
    settings = KVEventsSettings(**{"endpoint": free_address(), "bind": True, "replay_endpoint": replay, "topic": "kv", **fields})
    recorder = EventRecorder(root_hash(None), 2, settings.max_queue_size)
    made = EventPublisher(settings, recorder)
    try:
        yield recorder, made, replay
    finally:
        made.close()


@contextmanager
def connected(kind: int, address: str, hwm: int = 0) -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made = context.socket(kind)
    made.setsockopt(zmq.RCVHWM, hwm)
    made.setsockopt(zmq.RCVTIMEO, 60_000)
    made.connect(address)
    try:
        yield made
    finally:
        context.destroy(linger=0)


def replayed(address: str, first: int) -> list[tuple[int, Any]]:
    with connected(zmq.DEALER, address) as asking:
        asking.send_multipart([b"", first.to_bytes(8, "big")])
        found = []
        while (frames := asking.recv_multipart())[1] != END:
            found.append((int.from_bytes(frames[1], "big"), msgspec.msgpack.decode(frames[2])))
        assert frames == [b"", END, b""]
        return found


def record(recorder: EventRecorder, number: int, replay: str) -> None:
    """One event that is a batch of its own."""
    recorder.removed(number.to_bytes(32, "big"))
    while len(replayed(replay, 0)) <= number:
        pass


def test_batches_are_numbered_and_every_subscriber_gets_them() -> None:
    with publisher() as (recorder, made, replay), connected(zmq.SUB, made.endpoint) as one, connected(zmq.SUB, made.endpoint) as other, connected(zmq.SUB, made.endpoint) as deaf:
        one.subscribe(b"kv")
        other.subscribe(b"")
        deaf.subscribe(b"elsewhere")
        number = 0
        while not (one.poll(10) and other.poll(10)):  # until both are known to the publisher
            record(recorder, number, replay)
            number += 1
        record(recorder, number, replay)
        for each in (one, other):
            topic, seen, payload = each.recv_multipart()
            assert topic == b"kv"
            assert len(seen) == 8
            while int.from_bytes(seen, "big") < number:
                topic, after, payload = each.recv_multipart()
                assert int.from_bytes(after, "big") == int.from_bytes(seen, "big") + 1
                seen = after
            assert msgspec.msgpack.decode(payload)[1:] == [[["BlockRemoved", [number], "GPU"]], 0]
        assert not deaf.poll(0)


def test_a_replay_begins_where_it_is_asked_to_and_ends_with_minus_one() -> None:
    with publisher(buffer_steps=3) as (recorder, _, replay):
        assert replayed(replay, 0) == []
        for number in range(3):
            record(recorder, number, replay)
        assert [(number, batch[1]) for number, batch in replayed(replay, 1)] == [(1, [["BlockRemoved", [1], "GPU"]]), (2, [["BlockRemoved", [2], "GPU"]])]
        recorder.removed(b"\0" * 32)
        while (found := replayed(replay, 0))[0][0] == 0:
            pass
        assert [number for number, _ in found] == [1, 2, 3]  # the oldest is gone
        assert replayed(replay, 99) == []
        with connected(zmq.DEALER, replay) as asking:
            asking.send_multipart([b"", b"not a number"])
            asking.send_multipart([b"too short"])
        assert len(replayed(replay, 0)) == 3  # nonsense harms nobody


def test_one_that_does_not_read_holds_nobody_up() -> None:
    with publisher(hwm=1) as (recorder, made, replay), connected(zmq.SUB, made.endpoint, hwm=1) as stuck, connected(zmq.SUB, made.endpoint) as other:
        for each in (stuck, other):
            each.subscribe(b"")
        tokens = list(range(70000, 70000 + 2 * 20000))  # 40 batches of 0.4 MB: more than the buffers of a connection hold
        for number in range(40):
            recorder.stored(root_hash(None), None, [number.to_bytes(32, "big")] * 20000, tokens, [b""] * 20000)
            while len(replayed(replay, number)) < 1:
                pass
        assert [number for number, _ in replayed(replay, 0)] == list(range(40))
        assert recorder.take_counts().dropped == 0


def test_close_frees_the_address() -> None:
    address = free_address()
    for _ in range(2):
        with publisher(endpoint=address) as (recorder, made, _), connected(zmq.SUB, address) as reading:
            reading.subscribe(b"")
            while not reading.poll(10):
                recorder.cleared()
            made.close()
            made.close()


def test_an_address_that_is_taken_is_named_with_the_fix() -> None:
    with publisher() as (_, made, _), pytest.raises(ConfigError, match="cannot be bound: Address already in use") as caught:
        EventPublisher(KVEventsSettings(endpoint=made.endpoint, bind=True), EventRecorder(b"", 2, 10))
    assert caught.value.reason == "kv_events_address"
    assert "port is free" in str(caught.value.fix)


def test_ranks_have_ports_of_their_own() -> None:
    assert shifted("tcp://*:5557", 0) == "tcp://*:5557"
    assert shifted("tcp://[::1]:5557", 2) == "tcp://[::1]:5559"
    assert shifted("inproc://cache", 1) == "inproc://cache_dp1"
    with pytest.raises(ConfigError, match="no port"):
        shifted("tcp://*:x", 1)


@pytest.mark.parametrize(
    ("endpoint", "bind", "binds"),
    [("tcp://*:1", None, True), ("tcp://10.0.0.1:1", None, False), ("tcp://10.0.0.1:1", True, True), ("tcp://*:1", False, False), ("ipc:///tmp/x", None, True), ("tcp://[::1]:1", None, True)],
)
def test_who_binds(endpoint: str, bind: bool | None, binds: bool) -> None:
    assert read_kv_events({"endpoint": endpoint, "bind": bind}).binds is binds


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"port": 1}, "has no 'port'; it takes enable_kv_cache_events"),
        ({"enable_kv_cache_events": 1}, "enable_kv_cache_events must be a bool, got 1"),
        ({"publisher": "kafka"}, "publisher must be one of zmq, null"),
        ({"endpoint": "5557"}, "endpoint must begin with one of tcp://"),
        ({"endpoint": None}, "endpoint must be a str"),
        ({"replay_endpoint": "udp://x"}, "replay_endpoint must begin"),
        ({"hwm": 0}, "hwm must be from 1 to"),
        ({"buffer_steps": True}, "buffer_steps must be a int"),
        ([], "must be a JSON object"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_can(config: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")) as caught:
        read_kv_events(config)
    assert caught.value.param == "kv_events_config"
