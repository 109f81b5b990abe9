"""Landing: blocks that came from another engine and wait until their prompt is admitted."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.kvcache.block_hash import BlockHash
from headway.kvcache.offload.block_images import BlockImages
from headway.telemetry.stats import OffloadStats


class LandingRoom:
    """How many bytes may wait at a time."""

    def __init__(self, nbytes: int):
        self._free = nbytes
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> bool:
        """False, and no change, if so many are not free."""
        with self._lock:
            if nbytes > self._free:
                return False
            self._free -= nbytes
            return True

    def give(self, nbytes: int) -> None:
        with self._lock:
            self._free += nbytes


class Landing:
    """A `BlockSource` of the blocks of one prompt. Its room is free again when nobody holds it any more."""

    def __init__(self, images: BlockImages, hashes: Sequence[BlockHash], rows: NDArray[np.uint8], room: LandingRoom, taken: int):
        """`rows` [len(hashes), bytes of a block]. `taken`: bytes of `room`, to be given back."""
        self._images = images
        self._rows = dict(zip(hashes, rows, strict=True))
        self.counts = OffloadStats()
        weakref.finalize(self, room.give, taken)

    def __contains__(self, block_hash: BlockHash) -> bool:
        return block_hash in self._rows

    def restore(self, block_hash: BlockHash, block: int) -> bool:
        self._images.write(block, self._rows[block_hash])
        return True

    def touch(self, chain: Iterable[BlockHash]) -> None:
        """Nothing is evicted here."""
