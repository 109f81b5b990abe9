"""The records on the wire, in vLLM's format: MessagePack arrays, an event's first element being its name.

A batch is [seconds since 1970, [event, ...], rank]. What is not there is nil in its place.
"""

from __future__ import annotations

import msgspec

FIRST_TIER = "GPU"  # what vLLM calls the memory that attention reads, whatever the device is
_SHORT = (1 << 64) - 1


class BlockStored(msgspec.Struct, array_like=True, gc=False, frozen=True, tag=True):
    """Consecutive blocks of one chain; `token_ids` has all their tokens. `extra_keys` has, for each block, what else its hash is made of."""

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple[str, ...] | None] | None = None


class BlockRemoved(msgspec.Struct, array_like=True, gc=False, frozen=True, tag=True):
    block_hashes: list[int]
    medium: str | None


class AllBlocksCleared(msgspec.Struct, array_like=True, gc=False, frozen=True, tag=True):
    """Whatever was told before does not hold any more."""


Event = BlockStored | BlockRemoved | AllBlocksCleared


class EventBatch(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """`ts` in seconds since 1970; `data_parallel_rank` is the replica's that holds the blocks."""

    ts: float
    events: list[Event]
    data_parallel_rank: int | None = None


def wire_hash(block_hash: bytes) -> int:
    """The last 64 bits, which is how vLLM shortens its hashes for consumers that want numbers."""
    return int.from_bytes(block_hash, "big") & _SHORT
