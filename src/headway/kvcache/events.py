"""What a KV cache tells about its prefixes: which blocks can be found from now on, and which no longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from headway.kvcache.block_hash import BlockHash
from headway.telemetry.stats import KVEventStats

if TYPE_CHECKING:
    from headway.kvcache.manager import BlockTable


class CacheObserver(Protocol):
    """Called on the thread that owns the cache, in the order in which things happen; must neither block nor raise."""

    def stored(
        self, root: BlockHash, parent: BlockHash | None, hashes: Sequence[BlockHash], tokens: Sequence[int], contents: Sequence[bytes]
    ) -> None:
        """Consecutive blocks of one chain became findable. `parent` names the block before them, None where they begin the chain that
        `root` stands for; `tokens` are theirs, `len(hashes)` blocks full; `contents` is what else was hashed with each, often nothing."""
        ...

    def removed(self, block_hash: BlockHash) -> None:
        """A block is not found any more."""
        ...

    def cleared(self) -> None:
        """No block is found any more."""
        ...

    def take_counts(self) -> KVEventStats:
        """What became of it since the last call."""
        ...


def tell_stored(observer: CacheObserver, table: BlockTable, hashes: Sequence[BlockHash], new: Sequence[int], block_size: int) -> None:
    """Tell of the blocks at positions `new` (ascending) of the chain `hashes` of `table`, one call for each run of neighbours."""
    first = 0
    for at in range(1, len(new) + 1):
        if at == len(new) or new[at] != new[at - 1] + 1:
            start, end = new[first], new[at - 1] + 1
            parent = hashes[start - 1] if start else None
            contents = [table.contents.get(number, b"") for number in range(start, end)]
            observer.stored(table.root, parent, hashes[start:end], table.tokens[start * block_size : end * block_size], contents)
            first = at
