"""BlockBudget: how many KV blocks of a replica are free, and how much of a shared beginning is still in them. Counts, no tables.

Freed blocks join the end of a queue and are found until they come to its head; so what was freed is lost once as many blocks were handed out
as were free before it. Exact while nothing is taken back out of the middle of the queue, a little optimistic then.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Freed:
    """`count` blocks that joined the queue when `handed_out` blocks had been handed out and `ahead` were free before them."""

    count: int
    handed_out: int
    ahead: int


@dataclass(slots=True)
class SharedPrefix:
    """The leading blocks of a beginning; `holders` run with it. `freed` is set while nobody does."""

    blocks: int = 0
    holders: int = 0
    freed: Freed | None = None


_MOST_IDLE = 4096  # beginnings remembered before those that are lost are looked for


class BlockBudget:
    """`blocks` usable ones of `size` tokens."""

    def __init__(self, blocks: int, size: int):
        self.blocks = blocks
        self.size = size
        self.free = blocks
        self.handed_out = 0
        self._prefixes: dict[int, SharedPrefix] = {}
        self._sweep_at = _MOST_IDLE

    def for_tokens(self, tokens: int) -> int:
        return -(-tokens // self.size)

    def take(self, count: int) -> None:
        """Fresh blocks; there must be as many free ones."""
        self.free -= count
        self.handed_out += count

    def give_back(self, count: int) -> Freed:
        freed = Freed(count, self.handed_out, self.free)
        self.free += count
        return freed

    def still_there(self, freed: Freed | None) -> int:
        """Of freed blocks, those that nobody got since; the first of a sequence are freed last."""
        if freed is None:
            return 0
        return max(0, freed.count - max(0, self.handed_out - freed.handed_out - freed.ahead))

    def cached(self, prefix: int) -> tuple[int, int]:
        """Blocks of a beginning that would be found, and how many of these are among the free ones."""
        known = self._prefixes.get(prefix)
        if known is None:
            return 0, 0
        if known.holders:
            return known.blocks, 0
        there = self.still_there(known.freed)
        return there, there

    def hold(self, prefix: int, blocks: int, of_free: int) -> None:
        """Run with the first `blocks` blocks of a beginning that is cached, `of_free` of them free until now."""
        known = self._prefixes[prefix]
        if not known.holders:
            known.blocks, known.freed = blocks, None
        self.free -= of_free
        known.holders += 1

    def publish(self, prefix: int, blocks: int, *, holds: bool) -> bool:
        """Somebody's own leading `blocks` blocks hold the beginning. True when they are now the shared ones, False when others were first.

        Who computed the beginning beside somebody else keeps blocks of its own."""
        known = self._prefixes.setdefault(prefix, SharedPrefix())
        if known.holders == 0:
            known.blocks, known.freed = 0, None
        elif not holds:
            return False
        if known.blocks >= blocks:
            return False
        known.blocks = blocks
        known.holders += 0 if holds else 1
        return True

    def release(self, prefix: int) -> None:
        """One who ran with a beginning ends."""
        known = self._prefixes[prefix]
        known.holders -= 1
        if known.holders == 0:
            known.freed = self.give_back(known.blocks)
            if len(self._prefixes) > self._sweep_at:
                self._sweep()

    def _sweep(self) -> None:
        self._prefixes = {number: known for number, known in self._prefixes.items() if known.holders or self.still_there(known.freed)}
        self._sweep_at = max(_MOST_IDLE, 2 * len(self._prefixes))
