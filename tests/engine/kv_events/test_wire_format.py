"""The bytes on the wire, against bytes put together here by the rules of MessagePack, and against a decoder that knows nothing of our records."""

from __future__ import annotations

import struct

import msgspec

from headway.engine.kv_events.recorder import EventRecorder
from headway.engine.kv_events.wire_records import AllBlocksCleared, BlockRemoved, BlockStored, EventBatch, wire_hash
from headway.kvcache.block_hash import extend_hashes, root_hash

PLAIN = root_hash(None)


def text(value: str) -> bytes:
    return bytes([0xA0 | len(value)]) + value.encode()


def test_a_batch_is_an_array_of_tagged_arrays() -> None:
    events = [BlockStored([7, 2**64 - 1], 5, [1, 2, 300, 70000], 2, None, "GPU", None), BlockRemoved([7], "GPU"), AllBlocksCleared()]
    stored = b"\x99" + text("BlockStored") + b"\x92\x07\xcf" + b"\xff" * 8 + b"\x05" + b"\x94\x01\x02\xcd\x01\x2c\xce\x00\x01\x11\x70" + b"\x02\xc0" + text("GPU") + b"\xc0\xc0"
    removed = b"\x93" + text("BlockRemoved") + b"\x91\x07" + text("GPU")
    cleared = b"\x91" + text("AllBlocksCleared")
    whole = b"\x93\xcb" + struct.pack(">d", 1.5) + b"\x93" + stored + removed + cleared + b"\x00"
    assert msgspec.msgpack.encode(EventBatch(1.5, events, 0)) == whole
    assert msgspec.msgpack.encode(EventBatch(1.5, [])) == b"\x93\xcb" + struct.pack(">d", 1.5) + b"\x90\xc0"


def test_what_is_recorded_reads_as_a_chain_of_blocks() -> None:
    recorder = EventRecorder(PLAIN, 4, 100)
    hashes: list[bytes] = []
    extend_hashes(hashes, PLAIN, range(12), 4)
    recorder.stored(PLAIN, None, hashes[:2], range(8), [b"", b""])
    recorder.stored(PLAIN, hashes[1], hashes[2:], range(8, 12), [b""])
    recorder.removed(hashes[2])
    batch = recorder.next_batch(0.01)
    assert batch is not None
    ts, events, rank = msgspec.msgpack.decode(msgspec.msgpack.encode(EventBatch(2.0, batch, 3)))
    short = [int(each.hex()[-16:], 16) for each in hashes]
    assert (ts, rank) == (2.0, 3)
    assert events == [
        ["BlockStored", short[:2], None, list(range(8)), 4, None, "GPU", None, None],
        ["BlockStored", short[2:], short[1], [8, 9, 10, 11], 4, None, "GPU", None, None],
        ["BlockRemoved", short[2:], "GPU"],
    ]
    assert [wire_hash(each) for each in hashes] == short


def test_blocks_below_a_salt_or_an_adapter_carry_a_key_that_does_not_tell_it() -> None:
    recorder = EventRecorder(PLAIN, 2, 100)
    for root in (root_hash("tenant secret"), root_hash(None, b"digest of an adapter")):
        recorder.stored(root, None, [b"h" * 32, b"i" * 32], [1, 2, 3, 4], [b"", b""])
    batch = recorder.next_batch(0.01)
    events = msgspec.msgpack.decode(msgspec.msgpack.encode(batch))
    keys = [event[8] for event in events]
    assert all(len(key) == 2 and key[0] == key[1] for key in keys)
    assert keys[0] != keys[1]
    assert b"tenant" not in msgspec.msgpack.encode(batch)


def test_a_full_queue_drops_and_the_next_event_clears() -> None:
    recorder = EventRecorder(PLAIN, 2, 3)
    for number in range(5):
        recorder.removed(bytes([number]) * 32)
    assert recorder.take_counts().dropped == 2
    assert [len(event.block_hashes) for event in recorder.next_batch(0.01) or () if isinstance(event, BlockRemoved)] == [1, 1, 1]
    recorder.removed(b"x" * 32)
    kinds = [type(event) for event in recorder.next_batch(0.01) or ()]
    assert kinds == [AllBlocksCleared, BlockRemoved]
    assert recorder.take_counts().dropped == 0


def test_blocks_of_images_carry_their_digest() -> None:
    recorder = EventRecorder(PLAIN, 2, 100)
    recorder.stored(PLAIN, None, [b"h" * 32, b"i" * 32], [1, 2, 3, 4], [b"", b"\xab"])
    recorder.stored(root_hash("s"), None, [b"j" * 32], [1, 2], [b"\xab"])
    events = msgspec.msgpack.decode(msgspec.msgpack.encode(recorder.next_batch(0.01)))
    assert [event[8] for event in events] == [[None, ["ab"]], [[root_hash("s").hex(), "ab"]]]
