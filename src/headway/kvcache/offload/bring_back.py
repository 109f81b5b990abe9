"""Bringing copies back into the pool, so that the beginning of a sequence is found there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from headway.kvcache.block_hash import BlockHash
from headway.kvcache.block_pool import BlockPool
from headway.telemetry.stats import OffloadStats


class BlockSource(Protocol):
    """Copies of blocks outside of the pool, by hash."""

    counts: OffloadStats

    def __contains__(self, block_hash: BlockHash, /) -> bool: ...

    def restore(self, block_hash: BlockHash, block: int) -> bool:
        """Copy what the hash names to a block of the pool; False if it cannot be had."""
        ...

    def touch(self, chain: Iterable[BlockHash]) -> None:
        """These are wanted now."""
        ...


def bring_back(pool: BlockPool, tier: BlockSource, chain: Sequence[BlockHash], blocks_in_all: int, block_size: int) -> list[int]:
    """Make the longest prefix of `chain` that both together know findable in the pool, for a sequence that needs `blocks_in_all` blocks;
    the positions in `chain` of the blocks that were brought.

    Nothing is copied unless that sequence could begin now: what waits for room must not push blocks to and fro. What was brought is
    free like any other block that nobody holds, and the last to be evicted.
    """
    known = _longest(pool, tier, chain)
    here = [block for _, block in known if block is not None]
    if blocks_in_all - len(here) + pool.free_among(here) > pool.num_free:
        return []
    found_first = next((i for i, (_, block) in enumerate(known) if block is None), len(known))
    tier.counts.queried_tokens += (len(chain) - found_first) * block_size
    if found_first == len(known):
        return []
    tier.touch([block_hash for block_hash, _ in known])  # what the pool evicts now makes room elsewhere
    pool.hold(here)
    held, brought = list[int](), list[int]()
    for i, (block_hash, block) in enumerate(known):
        taken = _restored(pool, tier, block_hash) if block is None else block
        if taken is None:
            held += [later for _, later in known[i:] if later is not None]
            break
        held.append(taken)
        if block is None:
            tier.counts.found_tokens += block_size
            brought.append(i)
    pool.release(held)
    return brought


def _longest(pool: BlockPool, tier: BlockSource, chain: Sequence[BlockHash]) -> list[tuple[BlockHash, int | None]]:
    """With the blocks of the pool; None where only the tier has a copy."""
    known = list[tuple[BlockHash, int | None]]()
    for block_hash in chain:
        block = pool.block_of(block_hash)
        if block is None and block_hash not in tier:
            break
        known.append((block_hash, block))
    return known


def _restored(pool: BlockPool, tier: BlockSource, block_hash: BlockHash) -> int | None:
    """A block that holds what `block_hash` names, held once; None when the copy is gone or cannot be read."""
    taken = pool.allocate(1)
    if taken is None:
        return None
    if not tier.restore(block_hash, taken[0]):
        pool.release(taken)
        return None
    pool.publish(taken[0], block_hash)
    return taken[0]
