"""The pool of KV blocks: who holds how many references, which free blocks still hold a known prefix, who is evicted next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from headway.kvcache.block_hash import BlockHash

OnEvict = Callable[[int, BlockHash], None]  # a block that still holds what its hash says
OnForget = Callable[[BlockHash], None]
NULL_BLOCK = 0  # never handed out, so that padding in block tables points at memory nobody reads


class BlockPool:
    """`num_blocks` blocks, block 0 reserved.

    Invariants: a block is free exactly when its reference count is 0; every free block is in `_free` once, in order
    of eviction (front first: blocks without a hash, then hashed ones, least recently freed first); `_by_hash` maps a
    hash to the one block that carries it.
    """

    def __init__(self, num_blocks: int):
        if num_blocks < 2:
            raise ValueError(f"a pool needs the null block and at least one more, got {num_blocks}")
        self.num_blocks = num_blocks
        self._refs = [0] * num_blocks
        self._hash: list[BlockHash | None] = [None] * num_blocks
        self._by_hash: dict[BlockHash, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict((b, None) for b in range(1, num_blocks))
        self.on_evict: OnEvict | None = None  # told before a block with a hash is handed out anew
        self.on_forget: OnForget | None = None  # told when a hash is found no more, but not by `reset`

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def usage(self) -> float:
        """Fraction of usable blocks that somebody references, 0..1."""
        return 1.0 - len(self._free) / (self.num_blocks - 1)

    def references(self, block: int) -> int:
        return self._refs[block]

    def allocate(self, count: int) -> list[int] | None:
        """Take `count` blocks with one reference each, evicting what they cached; None, and no change, if there are fewer."""
        if count > len(self._free):
            return None
        out = []
        for _ in range(count):
            block, _unused = self._free.popitem(last=False)
            if self.on_evict is not None and (known := self._hash[block]) is not None:
                self.on_evict(block, known)
            self._forget(block)
            self._refs[block] = 1
            out.append(block)
        return out

    def find(self, hashes: Iterable[BlockHash]) -> list[int]:
        """Blocks of the longest known prefix of the chain. Takes no reference: call `hold` before anything else allocates."""
        out = []
        for h in hashes:
            block = self._by_hash.get(h)
            if block is None:
                break
            out.append(block)
        return out

    def block_of(self, block_hash: BlockHash) -> int | None:
        """The block that carries a hash."""
        return self._by_hash.get(block_hash)

    def hashes_of(self, blocks: Iterable[int]) -> list[BlockHash]:
        """Of those among `blocks` that carry one."""
        return [known for block in blocks if (known := self._hash[block]) is not None]

    def free_among(self, blocks: Iterable[int]) -> int:
        """How many of `blocks` are free now, i.e. would stop being available once held."""
        return sum(1 for b in blocks if self._refs[b] == 0)

    def hold(self, blocks: Iterable[int]) -> None:
        """Add a reference to each block; a free one leaves the eviction queue and keeps its contents."""
        for block in blocks:
            if self._refs[block] == 0:
                del self._free[block]
            self._refs[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """Drop one reference of each. The tail of a sequence is given first to eviction: a prefix is worth more than its end."""
        for block in reversed(blocks):
            self._refs[block] -= 1
            if self._refs[block] < 0:
                raise RuntimeError(f"block {block} was released more often than held")
            if self._refs[block] == 0:
                self._free[block] = None
                if self._hash[block] is None:
                    self._free.move_to_end(block, last=False)

    def publish(self, block: int, block_hash: BlockHash) -> bool:
        """Make a held block findable; False where it stays as it was: a second block with the same contents stays private, so that a hash
        names one block."""
        if self._hash[block] is not None or block_hash in self._by_hash:
            return False
        self._hash[block] = block_hash
        self._by_hash[block_hash] = block
        return True

    def unpublish(self, blocks: Iterable[int]) -> None:
        """Forget what these blocks hold: their contents were never computed (a step failed)."""
        for block in blocks:
            self._forget(block)

    def reset(self) -> bool:
        """Forget every prefix; False, and no change, while any block is held."""
        if len(self._free) != self.num_blocks - 1:
            return False
        for block in self._by_hash.values():
            self._hash[block] = None
        self._by_hash.clear()
        return True

    def _forget(self, block: int) -> None:
        known = self._hash[block]
        if known is not None:
            self._hash[block] = None
            del self._by_hash[known]
            if self.on_forget is not None:
                self.on_forget(known)
