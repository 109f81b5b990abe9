"""Bringing copies back into the pool, so that the beginning of a sequence is found there."""

from __future__ import annotations

from collections.abc import Sequence

from headway.kvcache.block_hash import BlockHash
from headway.kvcache.block_pool import BlockPool
from headway.kvcache.offload.second_tier import SecondTier


def bring_back(pool: BlockPool, tier: SecondTier, chain: Sequence[BlockHash], blocks_in_all: int, block_size: int) -> None:
    """Make the longest prefix of `chain` that both together know findable in the pool, for a sequence that needs `blocks_in_all` blocks.

    Nothing is copied unless that sequence could begin now: what waits for room must not push blocks to and fro. What was brought is
    free like any other block that nobody holds, and the last to be evicted.
    """
    known = _longest(pool, tier, chain)
    here = [block for _, block in known if block is not None]
    if blocks_in_all - len(here) + pool.free_among(here) > pool.num_free:
        return
    found_first = next((i for i, (_, block) in enumerate(known) if block is None), len(known))
    tier.counts.queried_tokens += (len(chain) - found_first) * block_size
    if found_first == len(known):
        return
    tier.touch([block_hash for block_hash, _ in known])  # what the pool evicts now makes room elsewhere
    pool.hold(here)
    held = list[int]()
    for i, (block_hash, block) in enumerate(known):
        taken = _restored(pool, tier, block_hash) if block is None else block
        if taken is None:
            held += [later for _, later in known[i:] if later is not None]
            break
        held.append(taken)
        tier.counts.found_tokens += block_size * (block is None)
    pool.release(held)


def _longest(pool: BlockPool, tier: SecondTier, chain: Sequence[BlockHash]) -> list[tuple[BlockHash, int | None]]:
    """With the blocks of the pool; None where only the tier has a copy."""
    known = list[tuple[BlockHash, int | None]]()
    for block_hash in chain:
        block = pool.block_of(block_hash)
        if block is None and block_hash not in tier:
            break
        known.append((block_hash, block))
    return known


def _restored(pool: BlockPool, tier: SecondTier, block_hash: BlockHash) -> int | None:
    """A block that holds what `block_hash` names, held once; None when the copy is gone or cannot be read."""
    taken = pool.allocate(1)
    if taken is None:
        return None
    if not tier.restore(block_hash, taken[0]):
        pool.release(taken)
        return None
    pool.publish(taken[0], block_hash)
    return taken[0]
