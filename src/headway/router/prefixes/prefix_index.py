"""PrefixIndex: the beginnings of prompts that one backend holds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from headway.router.prefixes.cache_events import CacheEvent, Cleared, Hash, Removed, Stored
from headway.router.prefixes.token_chain import ROOT, Key, TokenChain, next_key

_Block = tuple[int, Hash]  # group and the engine's hash


class PrefixIndex:
    """Bounded: of more than `most_blocks` beginnings, those that were neither told nor found for the longest time are forgotten.

    Invariants: `_key_of` maps a block of the engine to its key, `_blocks` a key to all blocks with it, least recently used first; neither has
    an entry without the other. A block whose parent is not known is not kept, since its tokens from the first one on are not known, so that
    what is in the index is true even if the events before were missed. Any thread may call.
    """

    def __init__(self, most_blocks: int):
        self._most = most_blocks
        self._key_of: dict[_Block, Key] = {}
        self._blocks: OrderedDict[Key, set[_Block]] = OrderedDict()
        self._block_size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._blocks)

    def apply(self, events: Iterable[CacheEvent]) -> None:
        with self._lock:
            for event in events:
                if isinstance(event, Stored):
                    self._store(event)
                elif isinstance(event, Removed):
                    for each in event.hashes:
                        self._remove((event.group, each))
                elif isinstance(event, Cleared):
                    self._clear()

    def clear(self) -> None:
        with self._lock:
            self._clear()

    def held(self, chain: TokenChain) -> int:
        """How many tokens at the beginning of the prompt the backend holds; they count as used."""
        with self._lock:
            if not self._blocks:
                return 0
            keys = chain.keys(self._block_size)
            count = 0
            while count < len(keys) and keys[count] in self._blocks:
                count += 1
            self._touch(keys[:count])
            return count * self._block_size

    def _store(self, event: Stored) -> None:
        if event.block_size != self._block_size:
            self._clear()  # another engine than before
            self._block_size = event.block_size
        key = ROOT if event.parent is None else self._key_of.get((event.group, event.parent))
        if key is None:
            return
        size = event.block_size
        for at, each in enumerate(event.hashes):
            key = next_key(key, event.tokens[at * size : (at + 1) * size])
            block = event.group, each
            if self._key_of.get(block) != key:
                self._remove(block)
                self._key_of[block] = key
                self._blocks.setdefault(key, set()).add(block)
            self._blocks.move_to_end(key)
        while len(self._blocks) > self._most:
            for block in self._blocks.popitem(last=False)[1]:
                del self._key_of[block]

    def _remove(self, block: _Block) -> None:
        key = self._key_of.pop(block, None)
        if key is not None:
            blocks = self._blocks[key]
            blocks.discard(block)
            if not blocks:
                del self._blocks[key]

    def _clear(self) -> None:
        self._key_of.clear()
        self._blocks.clear()

    def _touch(self, keys: Sequence[Key]) -> None:
        """The last one as used first: a beginning outlives its end, without which the end is never found."""
        for key in reversed(keys):
            self._blocks.move_to_end(key)
