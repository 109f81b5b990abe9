"""KVCacheManager: gives sequences their blocks, finds cached prefixes, takes blocks back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.kvcache.block_hash import NOTHING_ELSE, BlockHash, extend_hashes, root_hash
from headway.kvcache.block_pool import BlockPool
from headway.kvcache.events import CacheObserver, tell_stored
from headway.kvcache.offload.bring_back import BlockSource, bring_back
from headway.kvcache.offload.second_tier import SecondTier
from headway.telemetry.stats import KVEventStats, OffloadStats


@dataclass(slots=True, eq=False)
class BlockTable:
    """The blocks of one sequence, in order of position. `published` counts the leading blocks offered to the prefix cache. `tokens` are
    those that its hashes were made of, known where somebody observes."""

    root: BlockHash
    blocks: list[int] = field(default_factory=list)
    published: int = 0
    tokens: Sequence[int] = ()
    contents: Mapping[int, bytes] = field(default_factory=lambda: NOTHING_ELSE)  # number of a block -> what its tokens stand for beside what they are


class KVCacheManager:
    """Bookkeeping of one pool shared by all sequences.

    `caching=False` gives every sequence blocks of its own and looks nothing up.
    `second_tier`, given with `keep_evicted`, has copies of blocks that the pool gave up; `find_prefix` brings them back.
    An observer, given with `observe`, is told which blocks can be found.
    """

    def __init__(self, num_blocks: int, block_size: int, *, caching: bool = True):
        self.block_size = block_size
        self.caching = caching
        self.pool = BlockPool(num_blocks)
        self.second_tier: SecondTier | None = None
        self.give_back: Callable[[], bool] = _nothing_kept  # asks whoever holds blocks that no sequence needs; False when none are held
        self._observer: CacheObserver | None = None

    def keep_evicted(self, tier: SecondTier) -> None:
        """From now on, blocks that the pool hands out anew leave a copy in `tier`."""
        self.second_tier = tier
        self.pool.on_evict = tier.keep

    def observe(self, observer: CacheObserver) -> None:
        """Tell `observer` from now on. Nothing is cached yet: what was found before is not told."""
        self._observer = observer
        self.pool.on_forget = observer.removed

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def new_table(
        self, cache_salt: str | None = None, adapter: bytes | None = None, contents: Mapping[int, bytes] = NOTHING_ELSE
    ) -> BlockTable:
        """`adapter`: the digest of the one that changes what is computed; `contents`: as in `extend_hashes`."""
        return BlockTable(root_hash(cache_salt, adapter), contents=contents)

    def hashes(self, table: BlockTable, known: list[BlockHash], tokens: Sequence[int]) -> list[BlockHash]:
        """Hashes of the full blocks of `tokens`; `known` is the caller's list, extended in place so that none is made twice."""
        if self.caching:
            extend_hashes(known, table.root, tokens, self.block_size, table.contents)
            if self._observer is not None:
                table.tokens = tokens
        return known

    def known_blocks(self, chain: Sequence[BlockHash]) -> int:
        """How many leading blocks of `chain` the cache has, second tier included. A hint: any thread may ask, and they may be gone since."""
        tier = self.second_tier
        return next((i for i, h in enumerate(chain) if self.pool.block_of(h) is None and (tier is None or h not in tier)), len(chain))

    def find_prefix(
        self, hashes: Sequence[BlockHash], num_tokens: int, table: BlockTable | None = None, landing: BlockSource | None = None
    ) -> list[int]:
        """Blocks already holding the start of a sequence of `num_tokens` tokens; `table` is that sequence's. `landing` has copies that
        came for it alone.

        At least the last token is left to compute, since its hidden state is needed to go on.
        """
        if not self.caching:
            return []
        chain = hashes[: (num_tokens - 1) // self.block_size]
        for source in (self.second_tier, landing):
            if source is None:
                continue
            brought = bring_back(self.pool, source, chain, self.blocks_for(num_tokens), self.block_size)
            if self._observer is not None and table is not None:
                tell_stored(self._observer, table, chain, brought, self.block_size)
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
            new = [i for i in range(table.published, full) if self.pool.publish(table.blocks[i], hashes[i])]
            if self._observer is not None:
                tell_stored(self._observer, table, hashes, new, self.block_size)
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
        if done and self._observer is not None:
            self._observer.cleared()
        if done and offloaded and self.second_tier is not None:
            self.second_tier.clear()
        return done

    def take_offload_counts(self) -> OffloadStats | None:
        """What the second tier did since the last call; None without one."""
        return None if self.second_tier is None else self.second_tier.take_counts()

    def take_event_counts(self) -> KVEventStats | None:
        """What became of the events since the last call; None where nobody observes."""
        return None if self._observer is None else self._observer.take_counts()


def _nothing_kept() -> bool:
    return False
