"""KVCacheManager: gives sequences their blocks, finds cached prefixes, takes blocks back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headway.kvcache.block_hash import BlockHash, extend_hashes, root_hash
from headway.kvcache.block_pool import BlockPool
from headway.kvcache.offload.bring_back import bring_back
from headway.kvcache.offload.second_tier import SecondTier
from headway.telemetry.stats import OffloadStats


@dataclass(slots=True, eq=False)
class BlockTable:
    """The blocks of one sequence, in order of position. `published` counts the leading blocks offered to the prefix cache."""

    root: BlockHash
    blocks: list[int] = field(default_factory=list)
    published: int = 0


class KVCacheManager:
    """Bookkeeping of one pool shared by all sequences.

    `caching=False` gives every sequence blocks of its own and looks nothing up.
    `second_tier`, given with `keep_evicted`, has copies of blocks that the pool gave up; `find_prefix` brings them back.
    """

    def __init__(self, num_blocks: int, block_size: int, *, caching: bool = True):
        self.block_size = block_size
        self.caching = caching
        self.pool = BlockPool(num_blocks)
        self.second_tier: SecondTier | None = None

    def keep_evicted(self, tier: SecondTier) -> None:
        """From now on, blocks that the pool hands out anew leave a copy in `tier`."""
        self.second_tier = tier
        self.pool.on_evict = tier.keep

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def new_table(self, cache_salt: str | None = None, adapter: bytes | None = None) -> BlockTable:
        """`adapter`: the digest of the one that changes what is computed."""
        return BlockTable(root_hash(cache_salt, adapter))

    def hashes(self, table: BlockTable, known: list[BlockHash], tokens: Sequence[int]) -> list[BlockHash]:
        """Hashes of the full blocks of `tokens`; `known` is the caller's list, extended in place so that none is made twice."""
        if self.caching:
            extend_hashes(known, table.root, tokens, self.block_size)
        return known

    def find_prefix(self, hashes: Sequence[BlockHash], num_tokens: int) -> list[int]:
        """Blocks already holding the start of a sequence of `num_tokens` tokens.

        At least the last token is left to compute, since its hidden state is needed to go on.
        """
        if not self.caching:
            return []
        chain = hashes[: (num_tokens - 1) // self.block_size]
        if self.second_tier is not None:
            bring_back(self.pool, self.second_tier, chain, self.blocks_for(num_tokens), self.block_size)
        return self.pool.find(chain)

    def can_start(self, cached: Sequence[int], num_tokens: int, kept_free: int = 0) -> bool:
        """Whether a sequence that takes over `cached` and needs `num_tokens` in all would get its blocks now and leave
        `kept_free` blocks to others."""
        fresh = self.blocks_for(num_tokens) - len(cached)
        return fresh + self.pool.free_among(cached) + kept_free <= self.pool.num_free

    def adopt(self, table: BlockTable, cached: Sequence[int]) -> None:
        """Begin `table` with cached blocks, shared from now on."""
        self.pool.hold(cached)
        table.blocks.extend(cached)
        table.published = len(cached)

    def grow(self, table: BlockTable, num_tokens: int) -> bool:
        """Make room for `num_tokens` tokens in all; False, and no change, if the pool cannot."""
        missing = self.blocks_for(num_tokens) - len(table.blocks)
        if missing <= 0:
            return True
        fresh = self.pool.allocate(missing)
        if fresh is None:
            return False
        table.blocks.extend(fresh)
        return True

    def publish(self, table: BlockTable, hashes: Sequence[BlockHash], num_tokens: int) -> None:
        """Offer the full blocks among the first `num_tokens` tokens to later sequences.

        Called when a step is planned: a later sequence of the same step may share them, because a layer stores the
        keys and values of the whole batch before it attends. If the step fails, `retract` them.
        """
        if self.caching:
            full = num_tokens // self.block_size
            for i in range(table.published, full):
                self.pool.publish(table.blocks[i], hashes[i])
            table.published = max(table.published, full)

    def retract(self, blocks: Iterable[int]) -> None:
        """Nobody shall find these blocks any more: what they hold was not computed, or is not to be trusted."""
        blocks = list(blocks)
        if self.second_tier is not None:
            self.second_tier.forget(self.pool.hashes_of(blocks))
        self.pool.unpublish(blocks)

    def free(self, table: BlockTable) -> None:
        """Give all blocks back; full ones stay findable until evicted."""
        self.pool.release(table.blocks)
        table.blocks = []
        table.published = 0

    def reset(self, *, offloaded: bool = False) -> bool:
        """Forget every prefix, with `offloaded` also the copies in the second tier; False, and no change, while any block is held."""
        done = self.pool.reset()
        if done and offloaded and self.second_tier is not None:
            self.second_tier.clear()
        return done

    def take_offload_counts(self) -> OffloadStats | None:
        """What the second tier did since the last call; None without one."""
        return None if self.second_tier is None else self.second_tier.take_counts()
