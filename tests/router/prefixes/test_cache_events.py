"""Reading batches of events: every form in which engines write them, and everything that is none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.engine.kv_events.wire_records import AllBlocksCleared, BlockRemoved, BlockStored, EventBatch
from headway.router.prefixes.cache_events import Cleared, EventFormatError, Removed, Stored, read_batch
from tests.router.prefixes.wire import CLEARED, as_map, batch, removed, stored

EVENTS = [stored([1, 2], None, [5, 6, 7, 8], 2), removed([1], "GPU"), CLEARED]
READ = [Stored([1, 2], None, [5, 6, 7, 8], 2), Removed([1]), Cleared()]


def test_every_form_reads_the_same() -> None:
    maps = [as_map(event) for event in EVENTS]
    assert read_batch(batch(*EVENTS)) == READ
    assert read_batch(msgspec.msgpack.encode([1.0, EVENTS])) == READ
    assert read_batch(batch(*maps)) == READ
    assert read_batch(msgspec.msgpack.encode({"ts": 1.0, "events": maps})) == READ
    own = EventBatch(1.0, [BlockStored([1, 2], None, [5, 6, 7, 8], 2, None, "GPU", None), BlockRemoved([1], "GPU"), AllBlocksCleared()], 0)
    assert read_batch(msgspec.msgpack.encode(own)) == READ


def test_hashes_may_be_bytes_and_groups_are_kept_apart() -> None:
    event = stored([b"\x01" * 32], b"\x02" * 32, [1, 2], 2, None, "GPU", None, None, 3)
    assert read_batch(batch(event)) == [Stored([b"\x01" * 32], b"\x02" * 32, [1, 2], 2, 3)]
    assert read_batch(batch(as_map(event), removed([b"\x01" * 32], "GPU", 3))) == [Stored([b"\x01" * 32], b"\x02" * 32, [1, 2], 2, 3), Removed([b"\x01" * 32], 3)]


@pytest.mark.parametrize(
    "event",
    [
        stored([1], None, [1, 2], 2, 4),  # an adapter by number
        stored([1], None, [1, 2], 2, None, "GPU", "adapter"),
        stored([1], None, [1, 2], 2, None, "GPU", None, [["salt"]]),
        stored([1], None, [1, 2], 2, None, "CPU"),  # a copy, not what attention reads
        stored([1], None, [1, 2, 3, 4], 2),  # a state of layers without blocks
        stored([1], None, [], 0),
        removed([1], "CPU"),
        ["BlockMoved", 1, 2],
    ],
)
def test_what_says_nothing_about_plain_prompts_is_left_out(event: list[Any]) -> None:
    assert read_batch(batch(event)) == []
    if event[0] != "BlockMoved":
        assert read_batch(batch(as_map(event))) == []


def test_extra_keys_that_hold_nothing_are_none() -> None:
    assert len(read_batch(batch(stored([1], None, [1, 2], 2, None, "GPU", None, [None])))) == 1


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"\xc1", b"{}", msgspec.msgpack.encode(7), msgspec.msgpack.encode([1.0]), msgspec.msgpack.encode([1.0, "x"]), batch(7), batch([]), batch([7]),
        batch(["BlockStored"]), batch(["BlockRemoved", "x"]), batch(["BlockRemoved", [1.5]]), batch(stored([True], None, [1, 2], 2)),
        batch(stored([1], "x", [1, 2], 2)), batch(stored([1], None, ["a", "b"], 2)), batch(stored([1], None, [-1, 2], 2)), batch(stored([1], None, [2**40, 2], 2)),
        batch(stored([1], None, [1, 2], "2")), b"\x91" * 100_000,
    ],
)  # fmt: skip
def test_what_is_none_is_refused(payload: bytes) -> None:
    with pytest.raises(EventFormatError):
        read_batch(payload)


@given(st.binary(max_size=60))
def test_any_bytes_are_events_or_an_error(payload: bytes) -> None:
    try:
        read_batch(payload)
    except EventFormatError:
        return
