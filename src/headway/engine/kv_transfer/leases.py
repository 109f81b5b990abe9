"""Leases: blocks of finished prefills that another engine may still come for."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headway.kvcache.block_hash import BlockHash
from headway.kvcache.block_pool import BlockPool
from headway.telemetry.transfer_stats import TransferStats

SHARE_OF_POOL: Final = 0.5  # of all blocks may lie in leases; the rest is for requests that run


@dataclass(slots=True, eq=False)
class Lease:
    """`blocks[i]` holds what `hashes[i]` names, as long as `revoked` is false: look after copying, not before."""

    blocks: list[int]
    hashes: list[BlockHash]
    expires: float  # on time.monotonic
    revoked: bool = False
    done: bool = False  # the consumer has everything
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class Leases:
    """Each lease holds a reference of its blocks. The engine's thread keeps and revokes; the threads that send look leases up and copy.

    Nobody waits for a sender: a lease is revoked under its hands, and it sees that before it sends what it copied.
    """

    def __init__(self, pool: BlockPool, most: int, seconds: float, observe: Callable[[TransferStats], None], clock: Callable[[], float] = time.monotonic):
        self._pool = pool
        self._most, self._seconds = most, seconds
        self._most_blocks = int(SHARE_OF_POOL * (pool.num_blocks - 1))
        self._observe = observe
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: OrderedDict[str, Lease] = OrderedDict()  # oldest first
        self._num_blocks = 0

    # ---- the engine's thread ---------------------------------------------------------------------------------------

    def keep(self, blocks: Sequence[int], hashes: Sequence[BlockHash]) -> Lease | None:
        """The beginning of a prompt that is computed, as far as leases may hold blocks; None if that is nothing. Older leases make room."""
        count = min(len(blocks), len(hashes), self._most_blocks)
        if count == 0:
            return None
        while len(self._leases) >= self._most or self._num_blocks + count > self._most_blocks:
            self.drop_oldest()
        lease = Lease(list(blocks[:count]), list(hashes[:count]), self._clock() + self._seconds)
        self._pool.hold(lease.blocks)
        with self._lock:
            self._leases[lease.id] = lease
            self._num_blocks += count
        self._tell("kept")
        return lease

    def drop_oldest(self) -> bool:
        """Give the blocks of the oldest lease back; False if there is none."""
        oldest = next(iter(self._leases.values()), None)
        if oldest is None:
            return False
        self._revoke(oldest, "dropped")
        return True

    def sweep(self) -> None:
        """Give back what nobody came for in time, and what was taken."""
        for lease in list(self._leases.values()):
            if lease.done:
                self._revoke(lease, "taken")
            elif lease.expires <= self._clock():
                self._revoke(lease, "expired")

    def close(self) -> None:
        while self.drop_oldest():
            pass

    def _revoke(self, lease: Lease, why: str) -> None:
        with self._lock:
            lease.revoked = True
            del self._leases[lease.id]
            self._num_blocks -= len(lease.blocks)
        self._pool.release(lease.blocks)
        self._tell(why)

    # ---- threads that send -----------------------------------------------------------------------------------------

    def find(self, lease_id: str, seconds: float) -> Lease | None:
        """Of that name, kept for `seconds` more at least."""
        with self._lock:
            lease = self._leases.get(lease_id)
            if lease is not None:
                lease.expires = max(lease.expires, self._clock() + seconds)
            return lease

    @property
    def due(self) -> bool:
        """Whether `sweep` has something to do."""
        now = self._clock()
        with self._lock:
            return any(lease.done or lease.expires <= now for lease in self._leases.values())

    def _tell(self, why: str) -> None:
        with self._lock:
            state = TransferStats(lease_event=why, leases=len(self._leases), leased_blocks=self._num_blocks)
        self._observe(state)
