"""What an observer is told, against what the pool really finds: after anything that happens, both know the same blocks."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kvcache.manager import BlockTable, KVCacheManager
from headway.kvcache.offload.block_images import BlockImages
from headway.kvcache.offload.second_tier import SecondTier
from headway.kvcache.offload.slots import MemorySlots
from headway.telemetry.stats import KVEventStats

POOL, BLOCK = 7, 2


class Mirror:
    """Keeps what it is told, in the plainest form. Hashes are checked against their definition."""

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[int, ...]] = {}  # all tokens up to the end of the block
        self.prefixes: dict[bytes, tuple[int, ...]] = {}  # also of blocks that are gone: a parent may be

    def stored(self, root: bytes, parent: bytes | None, hashes: Sequence[bytes], tokens: Sequence[int], contents: Sequence[bytes]) -> None:
        assert len(tokens) == BLOCK * len(hashes) == BLOCK * len(contents) > 0
        before = () if parent is None else self.prefixes[parent]
        above = root if parent is None else parent
        for at, each in enumerate(hashes):
            mine = tuple(tokens[at * BLOCK : (at + 1) * BLOCK])
            assert each == hashlib.sha256(above + struct.pack(f"<{BLOCK}q", *mine) + contents[at]).digest()
            assert each not in self.known
            before = before + mine
            self.known[each] = self.prefixes[each] = before
            above = each

    def removed(self, block_hash: bytes) -> None:
        del self.known[block_hash]

    def cleared(self) -> None:
        self.known.clear()

    def take_counts(self) -> KVEventStats:
        return KVEventStats()


class ObservedCache(RuleBasedStateMachine):
    tier = False

    def __init__(self) -> None:
        super().__init__()
        self.manager = KVCacheManager(POOL, BLOCK)
        if self.tier:
            kv = PagedKV(POOL, BLOCK, KVShape(1, 1, 2), torch.float32)
            images = BlockImages(kv)
            self.manager.keep_evicted(SecondTier(images, MemorySlots(5, images.nbytes)))
        self.mirror = Mirror()
        self.manager.observe(self.mirror)
        self.running: list[tuple[BlockTable, list[bytes], list[int]]] = []

    @rule(talk=st.integers(0, 2), length=st.integers(1, 9), salt=st.sampled_from([None, "s"]), image=st.sampled_from([{}, {}, {1: b"i"}]))
    def begin(self, talk: int, length: int, salt: str | None, image: dict[int, bytes]) -> None:
        tokens = [talk] + [0] * (length - 1)
        table = self.manager.new_table(salt, contents=image)
        hashes = self.manager.hashes(table, [], tokens)
        cached = self.manager.find_prefix(hashes, length, table)
        if not self.manager.can_start(cached, length):
            return
        self.manager.adopt(table, cached)
        assert self.manager.grow(table, length)
        self.manager.publish(table, hashes, length)
        self.running.append((table, hashes, tokens))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), more=st.lists(st.integers(0, 1), min_size=1, max_size=3))
    def go_on(self, data: st.DataObject, more: list[int]) -> None:
        table, hashes, tokens = data.draw(st.sampled_from(self.running))
        if self.manager.grow(table, len(tokens) + len(more)):
            tokens += more
            self.manager.publish(table, self.manager.hashes(table, hashes, tokens), len(tokens))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), failed=st.booleans())
    def end(self, data: st.DataObject, failed: bool) -> None:
        table, _, _ = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if failed:
            self.manager.retract(table.blocks)
        self.manager.free(table)

    @rule(offloaded=st.booleans())
    def reset(self, offloaded: bool) -> None:
        assert self.manager.reset(offloaded=offloaded) == (not self.running)

    @invariant()
    def both_know_the_same(self) -> None:
        assert set(self.mirror.known) == set(self.manager.pool._by_hash)


class ObservedTwoTiers(ObservedCache):
    tier = True


TestObservedCache = ObservedCache.TestCase
TestObservedCache.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestObservedTwoTiers = ObservedTwoTiers.TestCase
TestObservedTwoTiers.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
