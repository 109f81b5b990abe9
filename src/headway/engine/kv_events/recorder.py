"""EventRecorder: what happens in the cache, as events in a bounded queue. The cache's thread fills it, a publisher empties it."""

from __future__ import annotations

import queue
from collections.abc import Sequence

from headway.engine.kv_events.wire_records import (
    FIRST_TIER,
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    wire_hash,
)
from headway.kvcache.block_hash import BlockHash
from headway.telemetry.stats import KVEventStats

MOST_IN_A_BATCH = 256


class EventRecorder:
    """A `CacheObserver`. Recording never waits: when the queue is full, events are dropped and counted until it has been emptied, and the
    first event after that is AllBlocksCleared. Whoever follows the events then knows too little, never something that is wrong.

    Salts of tenants are not told. Blocks below one, and those of LoRA adapters, carry the hash of their root as an extra key, blocks of
    images their digest.
    """

    def __init__(self, plain_root: BlockHash, block_size: int, most: int):
        self.published = 0  # written by the publisher's thread only
        self._plain_root = plain_root
        self._block_size = block_size
        self._most = most
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._overflowed = False
        self._dropped = 0
        self._taken = KVEventStats()

    def stored(
        self, root: BlockHash, parent: BlockHash | None, hashes: Sequence[BlockHash], tokens: Sequence[int], contents: Sequence[bytes]
    ) -> None:
        above = () if root == self._plain_root else (root.hex(),)
        extra = [(*above, each.hex()) if each else above or None for each in contents]
        self._record(
            BlockStored(
                [wire_hash(each) for each in hashes], None if parent is None else wire_hash(parent), list(tokens), self._block_size,
                None, FIRST_TIER, None, extra if any(extra) else None,
            )
        )  # fmt: skip

    def removed(self, block_hash: BlockHash) -> None:
        self._record(BlockRemoved([wire_hash(block_hash)], FIRST_TIER))

    def cleared(self) -> None:
        self._record(AllBlocksCleared())

    def take_counts(self) -> KVEventStats:
        now = KVEventStats(self.published, self._dropped)
        taken, self._taken = self._taken, now
        return KVEventStats(now.published - taken.published, now.dropped - taken.dropped)

    def next_batch(self, seconds: float) -> list[Event] | None:
        """For the one thread that publishes: what is recorded now, at most so much as one batch holds; empty when nothing came within
        `seconds`, None at the end."""
        events: list[Event] = []
        try:
            while len(events) < MOST_IN_A_BATCH:
                event = self._queue.get(timeout=seconds) if not events else self._queue.get_nowait()
                if event is None:
                    if not events:
                        return None
                    self._queue.put(None)
                    return events
                events.append(event)
        except queue.Empty:
            self._recover()
        return events

    def end(self) -> None:
        """The publisher shall stop when it has sent what is recorded."""
        self._queue.put(None)

    def _record(self, event: Event) -> None:
        if self._overflowed or self._queue.qsize() >= self._most:
            self._overflowed = True
            self._dropped += 1
        else:
            self._queue.put(event)

    def _recover(self) -> None:
        """The queue is empty. While it overflowed nothing was put in, so that what comes now is the first after what was lost."""
        if self._overflowed:
            self._queue.put(AllBlocksCleared())
            self._overflowed = False
