"""What goes wrong between two engines costs time and nothing else: the prompt is computed, and everybody is given their blocks back."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headway.engine.outputs import RequestOutput
from headway.errors import EngineDeadError, TransferError
from tests.engine.kv_transfer.engines import BLOCK_BYTES, PATIENCE, PROMPT, Relay, Started, run, until
from tests.engine.tiny_folder import complete_tiny_model


def test_what_is_not_there_any_more(producer: Started, consumer: Started) -> None:
    """Another engine at the same address, another lease, nobody at all."""
    source = run(lambda: producer.prefill(PROMPT))
    for change, outcome in (({"remote_engine_id": "other"}, "engine_changed"), ({"remote_request_id": "other"}, "lease_unknown"), ({"remote_port": 1}, "unreachable")):
        before = consumer.outcome(outcome)
        answer = run(lambda change=change: consumer.ask(PROMPT, transfer={**source, **change}))  # type: ignore[misc]
        assert consumer.outcome(outcome) == before + 1
        assert answer.num_cached_tokens == 0
        assert run(lambda: consumer.engine.reset_prefix_cache())
    assert run(lambda: consumer.ask(PROMPT, transfer=source)).num_cached_tokens == 64, "the lease was not harmed"


def test_pulled_blocks_have_their_limit(folder: Path, producer: Started) -> None:
    consumer = Started(folder, "kv_consumer", {"kv_buffer_size": 3 * BLOCK_BYTES})

    async def ask(prompt: list[int]) -> RequestOutput:
        return await consumer.ask(prompt, transfer=await producer.prefill(prompt))

    assert run(lambda: ask(PROMPT)).num_cached_tokens == 0
    assert consumer.outcome("buffer_full") == 1
    for first in (1, 2, 3):  # the room is free again each time
        assert run(lambda first=first: ask([first, *PROMPT[1:60]])).num_cached_tokens == 48  # type: ignore[misc]
    consumer.close()


def test_a_lease_that_ends_while_it_is_sent(producer: Started, consumer: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's thread takes the blocks back between copying and sending: what was copied is not sent."""
    transfer = producer.engine._transfer
    assert transfer is not None
    read = transfer._images.read

    def revoked(block: int, image: Any) -> None:
        read(block, image)
        done = threading.Event()

        def revoke() -> None:
            transfer._leases.close()
            done.set()

        producer.engine._commands.put(revoke)
        assert done.wait(60)

    async def ask() -> RequestOutput:
        source = await producer.prefill(PROMPT)
        monkeypatch.setattr(transfer._images, "read", revoked)
        return await consumer.ask(PROMPT, transfer=source)

    before = consumer.outcome("peer_closed")
    assert run(ask).num_cached_tokens == 0
    assert producer.outcome("lease_revoked") == 1
    assert consumer.outcome("peer_closed") == before + 1


def test_strangers_at_the_port_harm_nobody(producer: Started, consumer: Started) -> None:
    source = run(lambda: producer.prefill(PROMPT))
    address = ("127.0.0.1", source["remote_port"])
    frame = struct.Struct(">4sBI")
    before = producer.metric("headway:kv_transfers_total", direction="out")
    for junk in (b"GET / HTTP/1.1\r\n\r\n", frame.pack(b"HWKV", 2, 2**32 - 1), frame.pack(b"HWKV", 4, 10) + bytes(26), b"H"):
        with socket.create_connection(address) as stranger, suppress(OSError):  # it may have been hung up on meanwhile
            stranger.sendall(junk)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(20)
            while stranger.recv(4096):
                pass
    until(lambda: producer.metric("headway:kv_transfers_total", direction="out") == before + 4)
    silent = [socket.create_connection(address) for _ in range(8)]
    assert run(lambda: consumer.ask(PROMPT, transfer=source)).num_cached_tokens == 64
    for each in silent:
        each.close()


def test_a_lease_ends(folder: Path, consumer: Started) -> None:
    producer = Started(folder, "kv_producer", {"kv_connector_extra_config": {"kv_lease_duration": 1}})
    source = run(lambda: producer.prefill(PROMPT))
    assert producer.metric("headway:kv_transfer_lease_events_total", event="kept") == 1
    until(lambda: producer.held_blocks == 0)
    assert producer.metric("headway:kv_transfer_lease_events_total", event="expired") == 1
    until(lambda: producer.metric("vllm:kv_cache_usage_perc") == 0)
    before = consumer.outcome("lease_unknown")
    answer = run(lambda: consumer.ask(PROMPT, transfer=source))
    assert answer.num_cached_tokens == 0
    assert consumer.outcome("lease_unknown") == before + 1
    assert answer.outputs[0].token_ids == run(lambda: producer.ask(PROMPT)).outputs[0].token_ids
    producer.close()


def test_what_is_damaged_or_cut_off_is_computed(producer: Started, consumer: Started) -> None:
    """A byte is flipped, or the connection ends, at the greeting, at the grant and in the middle of the blocks."""
    right = run(lambda: producer.ask(PROMPT)).outputs[0].token_ids
    before = [consumer.outcome(outcome) for outcome in ("frame_damaged", "peer_closed")]

    def flipped(place: int) -> Any:
        return lambda data, at: data[: place - at] + bytes([data[place - at] ^ 1]) + data[place - at + 1 :] if at <= place < at + len(data) else data

    def cut(place: int) -> Any:
        return lambda data, at: None if at + len(data) > place else data

    for change in (flipped(2), flipped(40), flipped(20_000), cut(1), cut(300), cut(20_000)):

        async def through() -> RequestOutput:
            source = await producer.prefill(PROMPT)
            relay = Relay(source["remote_port"], change)  # noqa: B023 - used before the next
            try:
                return await consumer.ask(PROMPT, transfer={**source, "remote_port": relay.port})
            finally:
                relay.close()

        answer = run(through)
        assert answer.outputs[0].token_ids == right
        assert answer.num_cached_tokens == 0, "nothing of it was believed"
        run(lambda: consumer.engine.reset_prefix_cache())
    assert [consumer.outcome(outcome) for outcome in ("frame_damaged", "peer_closed")] == [before[0] + 3, before[1] + 3]


def test_who_stalls_is_not_waited_for(folder: Path, producer: Started) -> None:
    consumer = Started(folder, "kv_consumer", {"kv_connector_extra_config": {"pull_timeout": 0.5}})

    async def stalled() -> RequestOutput:
        source = await producer.prefill(PROMPT)
        relay = Relay(source["remote_port"], lambda data, at: b"")
        waiting = asyncio.create_task(consumer.ask(PROMPT, transfer={**source, "remote_port": relay.port}))
        other = await consumer.ask(PROMPT[:20])  # is not held up
        assert len(other.outputs[0].token_ids) == 8
        answer = await waiting
        relay.close()
        return answer

    assert len(run(stalled).outputs[0].token_ids) == 8
    assert consumer.outcome("timed_out") == 1
    consumer.close()


def test_a_caller_that_leaves_takes_its_pull_along(folder: Path) -> None:
    consumer = Started(folder, "kv_consumer", {"kv_connector_extra_config": {"pull_timeout": 100}})
    listener = socket.create_server(("127.0.0.1", 0))  # says nothing
    source = {"do_remote_prefill": True, "remote_host": "127.0.0.1", "remote_port": listener.getsockname()[1], "remote_engine_id": "e", "remote_request_id": "r"}

    async def leave() -> None:
        waiting = asyncio.create_task(consumer.ask(PROMPT, transfer=source))
        connection, _ = await asyncio.to_thread(listener.accept)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        connection.settimeout(PATIENCE / 2)
        assert await asyncio.to_thread(connection.recv, 1) == b"", "it was hung up"
        connection.close()

    run(leave)
    listener.close()
    transfer = consumer.engine._transfer
    assert transfer is not None
    assert not transfer._pulls
    assert transfer._room.take(1_000_000_000), "all of its room is free"
    consumer.close()


def test_another_model_or_layout_is_refused_with_what_differs(folder: Path, tmp_path: Path, producer: Started) -> None:
    other = complete_tiny_model("smollm", tmp_path).folder
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 2e-4}))
    for consumer, names in (
        (Started(other, "kv_consumer", {"kv_load_failure_policy": "fail"}), ["model is "]),
        (Started(folder, "kv_consumer", {"kv_load_failure_policy": "fail"}, block_size=32, dtype="bfloat16"), ["block_size is 16 here and 32 there", "dtype is float32 here and bfloat16 there"]),
    ):  # fmt: skip

        async def ask(consumer: Started = consumer) -> RequestOutput:
            return await consumer.ask(PROMPT, transfer=await producer.prefill(PROMPT))

        with pytest.raises(TransferError) as failed:
            run(ask)
        assert failed.value.reason == "layout_mismatch"
        assert all(name in failed.value.message for name in names)
        assert consumer.outcome("layout_mismatch") == 1
        consumer.close()


def test_the_key_is_needed_at_both_ends(folder: Path, consumer: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_KV_TRANSFER_KEY", "a-key-of-some-length")
    keyed, partner = Started(folder, "kv_producer"), Started(folder, "kv_consumer")

    async def ask(decoder: Started) -> RequestOutput:
        return await decoder.ask(PROMPT, transfer=await keyed.prefill(PROMPT))

    assert run(lambda: ask(partner)).num_cached_tokens == 64
    assert run(lambda: ask(consumer)).num_cached_tokens == 0
    assert consumer.outcome("unauthorized") == 1
    until(lambda: keyed.outcome("unauthorized") == 1)
    keyed.close()
    partner.close()


def test_other_hosts_need_a_key(folder: Path, consumer: Started) -> None:
    with pytest.raises(EngineDeadError, match="no key protects"):
        Started(folder, "kv_producer", {"kv_ip": "192.0.2.1"})
    source = {"do_remote_prefill": True, "remote_host": "192.0.2.1", "remote_port": 9, "remote_engine_id": "e", "remote_request_id": "r"}
    assert len(run(lambda: consumer.ask(PROMPT, transfer=source)).outputs[0].token_ids) == 8
    assert consumer.outcome("key_missing") == 1


def test_nothing_is_said_to_a_peer_that_does_not_greet(consumer: Started) -> None:
    """Somebody's address in a request makes this server connect, and no more."""
    heard: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        connection, _ = listener.accept()
        connection.sendall(b"SSH-2.0-x")  # as long as the head of a frame, so that the peer leaves nothing unread
        heard.append(connection.recv(100))
        connection.close()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    source = {"do_remote_prefill": True, "remote_host": "127.0.0.1", "remote_port": listener.getsockname()[1], "remote_engine_id": "e", "remote_request_id": "r"}
    before = consumer.outcome("frame_damaged")
    assert len(run(lambda: consumer.ask(PROMPT, transfer=source)).outputs[0].token_ids) == 8
    thread.join(10)
    assert heard == [b""]
    assert consumer.outcome("frame_damaged") == before + 1
    listener.close()
