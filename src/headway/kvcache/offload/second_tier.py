"""SecondTier: which hashes have a copy outside of the pool, in which slot, and which copy goes next."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable

from headway.kvcache.block_hash import BlockHash
from headway.kvcache.offload.block_images import BlockImages
from headway.kvcache.offload.slots import Slots
from headway.telemetry.stats import OffloadStats

_log = logging.getLogger(__name__)


class SecondTier:
    """Copies of blocks that the pool evicted, least recently used first in `_slots`.

    Invariants: every slot is free or holds the copy of exactly one hash; a copy has the bytes that the block had when it was
    evicted. A disk that fails costs copies, never a request.
    """

    def __init__(self, images: BlockImages, slots: Slots):
        self._images = images
        self._store = slots
        self._slots: OrderedDict[BlockHash, int] = OrderedDict()
        self._free = list(range(slots.count))
        self.counts = OffloadStats()

    def __contains__(self, block_hash: BlockHash) -> bool:
        return block_hash in self._slots

    def __len__(self) -> int:
        return len(self._slots)

    def keep(self, block: int, block_hash: BlockHash) -> None:
        """Copy a block that is about to be overwritten, unless there is a copy; the least recently used one makes room."""
        if block_hash in self._slots:
            self._slots.move_to_end(block_hash)
            return
        if self._free:
            slot = self._free.pop()
        else:
            _, slot = self._slots.popitem(last=False)
            self.counts.evictions += 1
        try:
            self._store.store(slot, lambda image: self._images.read(block, image))
        except OSError as error:
            _log.warning("a KV block is not kept: %s", error)
            self._free.append(slot)
            return
        self._slots[block_hash] = slot
        self.counts.bytes_out += self._images.nbytes

    def restore(self, block_hash: BlockHash, block: int) -> bool:
        """Copy what is kept under `block_hash` to a block of the pool; False if it cannot be read. The copy stays."""
        slot = self._slots.get(block_hash)
        if slot is None:
            return False
        try:
            self._store.fetch(slot, lambda image: self._images.write(block, image))
        except OSError as error:
            _log.warning("a kept KV block cannot be read: %s", error)
            self.forget([block_hash])
            return False
        self.counts.bytes_in += self._images.nbytes
        return True

    def touch(self, chain: Iterable[BlockHash]) -> None:
        """Mark copies as used, the last one as used first: without its beginning the end of a chain is worth nothing."""
        for block_hash in reversed(list(chain)):
            if block_hash in self._slots:
                self._slots.move_to_end(block_hash)

    def forget(self, hashes: Iterable[BlockHash]) -> None:
        """Drop copies that are not to be trusted."""
        for block_hash in hashes:
            slot = self._slots.pop(block_hash, None)
            if slot is not None:
                self._free.append(slot)

    def clear(self) -> None:
        """Drop all copies and give their memory back."""
        self.forget(list(self._slots))
        self._store.release()

    def take_counts(self) -> OffloadStats:
        """The counts since the last call."""
        taken, self.counts = self.counts, OffloadStats()
        taken.used_bytes = len(self._slots) * self._images.nbytes
        return taken
