"""The pool and its second tier against a plain model: whatever was computed is found with its own bytes, or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kvcache.manager import BlockTable, KVCacheManager
from headway.kvcache.offload.block_images import BlockImages, Image
from headway.kvcache.offload.second_tier import SecondTier
from headway.kvcache.offload.slots import FileSlots, MemorySlots, OnImage

POOL, BLOCK = 6, 2


def write(kv: PagedKV, block: int, name: bytes) -> None:
    """What a model would compute for the prefix `name`, in every layer."""
    for i, part in enumerate((*kv.layers, *kv.scales)):
        part[:, :, block] = (name[i] % 100) + 1


def holds(kv: PagedKV, block: int, name: bytes) -> bool:
    return all(bool((part[:, :, block] == (name[i] % 100) + 1).all()) for i, part in enumerate((*kv.layers, *kv.scales)))


class TwoTiers(RuleBasedStateMachine):
    """`slots` of the tier; with room for all that can be computed, all that was computed is found again."""

    slots = 400
    dtype = torch.float32

    def __init__(self) -> None:
        super().__init__()
        self.kv = PagedKV(POOL, BLOCK, KVShape(2, 1, 4), self.dtype)
        images = BlockImages(self.kv)
        self.manager = KVCacheManager(POOL, BLOCK)
        self.tier = SecondTier(images, MemorySlots(self.slots, images.nbytes))
        self.manager.keep_evicted(self.tier)
        self.computed: set[bytes] = set()
        self.running: list[tuple[BlockTable, list[bytes]]] = []

    @rule(talk=st.integers(0, 3), length=st.integers(3, 9), ends=st.booleans())
    def begin(self, talk: int, length: int, ends: bool) -> None:
        """Few beginnings, so that they come again; some end at once."""
        tokens = [talk] + [0] * (length - 1)
        table = self.manager.new_table()
        hashes = self.manager.hashes(table, [], tokens)
        cached = self.manager.find_prefix(hashes, len(tokens))
        if not self.manager.can_start(cached, len(tokens)):
            return
        usable = hashes[: (len(tokens) - 1) // BLOCK]
        known = next((i for i, h in enumerate(usable) if h not in self.computed), len(usable))
        assert len(cached) <= known, "nobody computed that"
        if self.slots >= 400:
            assert len(cached) == known, "something that was computed is lost"
        self.manager.adopt(table, cached)
        assert self.manager.grow(table, len(tokens))
        for i, block_hash in enumerate(hashes):
            if i < len(cached):
                assert holds(self.kv, table.blocks[i], block_hash), "a block holds something else than its hash says"
            else:
                write(self.kv, table.blocks[i], block_hash)
                self.computed.add(block_hash)
        self.manager.publish(table, hashes, len(tokens))
        if ends:
            self.manager.free(table)
        else:
            self.running.append((table, hashes))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), failed=st.booleans())
    def end(self, data: st.DataObject, failed: bool) -> None:
        table, _hashes = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if failed and self.slots < 400:  # what it computed is not to be trusted: nobody may find it
            self.manager.retract(table.blocks)
            for block in table.blocks:
                if self.manager.pool.references(block) == 1:
                    write(self.kv, block, b"\xff" * 32)
        self.manager.free(table)

    @rule(offloaded=st.booleans())
    def reset(self, offloaded: bool) -> None:
        done = self.manager.reset(offloaded=offloaded)
        assert done == (self.manager.pool.num_free == POOL - 1)
        if done and offloaded:
            assert len(self.tier) == 0
        if done:
            self.computed = {h for h in self.computed if h in self.tier}

    @invariant()
    def bounded_and_true(self) -> None:
        assert len(self.tier) <= self.slots
        assert len(self.tier._slots) + len(self.tier._free) == self.slots
        assert len(set(self.tier._slots.values()) | set(self.tier._free)) == self.slots
        for table, hashes in self.running:
            for block, block_hash in zip(table.blocks, hashes, strict=False):
                assert holds(self.kv, block, block_hash), "somebody wrote into a block that is in use"
        for block_hash, block in self.manager.pool._by_hash.items():
            assert holds(self.kv, block, block_hash)


class SmallTier(TwoTiers):
    slots = 2


class QuantizedTier(TwoTiers):
    slots = 5
    dtype = torch.int8


for machine in (TwoTiers, SmallTier, QuantizedTier):
    machine.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestTwoTiers, TestSmallTier, TestQuantizedTier = TwoTiers.TestCase, SmallTier.TestCase, QuantizedTier.TestCase


def test_copies_in_a_file_come_back_and_leave_no_name(tmp_path: Path) -> None:
    kv = PagedKV(POOL, BLOCK, KVShape(2, 2, 4), torch.bfloat16)
    images = BlockImages(kv)
    tier = SecondTier(images, FileSlots(3, images.nbytes, tmp_path))
    assert list(tmp_path.iterdir()) == []
    names = [bytes([i]) * 32 for i in range(4)]
    for block, name in enumerate(names, 1):
        write(kv, block, name)
        tier.keep(block, name)
    assert (names[0] in tier, tier.counts.evictions) == (False, 1)
    assert tier.restore(names[2], 5)
    assert holds(kv, 5, names[2])
    taken = tier.take_counts()
    assert (taken.bytes_out, taken.bytes_in, taken.used_bytes) == (4 * images.nbytes, images.nbytes, 3 * images.nbytes)
    tier.clear()
    assert not tier.restore(names[2], 5)


class _FailingSlots(MemorySlots):
    broken = False

    def store(self, slot: int, fill: OnImage) -> None:
        if self.broken:
            raise OSError(errno.ENOSPC, "the disk is full")
        super().store(slot, fill)

    def fetch(self, slot: int, use: OnImage) -> None:
        if self.broken:
            raise OSError(errno.EIO, "the disk is broken")
        super().fetch(slot, use)


def test_a_disk_that_fails_costs_copies_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    kv = PagedKV(POOL, BLOCK, KVShape(1, 1, 4), torch.float32)
    images = BlockImages(kv)
    slots = _FailingSlots(2, images.nbytes)
    tier = SecondTier(images, slots)
    tier.keep(1, b"a" * 32)
    slots.broken = True
    tier.keep(2, b"b" * 32)
    assert b"b" * 32 not in tier
    assert not tier.restore(b"a" * 32, 3)
    assert len(tier) == 0
    assert len(tier._free) == 2
    assert "the disk is full" in caplog.text
    assert "the disk is broken" in caplog.text


def test_the_beginning_of_a_chain_is_given_up_last() -> None:
    kv = PagedKV(POOL, BLOCK, KVShape(1, 1, 4), torch.float32)
    images = BlockImages(kv)
    tier = SecondTier(images, MemorySlots(3, images.nbytes))
    chain = [bytes([i]) * 32 for i in range(3)]
    for i, name in enumerate(chain):
        tier.keep(i + 1, name)
    tier.touch(chain)
    tier.keep(4, b"new" * 10)
    assert [name in tier for name in chain] == [True, True, False]


def test_an_image_is_the_whole_block() -> None:
    """Against plain indexing: bytes of the block in every layer, nothing of its neighbours."""
    kv = PagedKV(4, BLOCK, KVShape(2, 2, 4), torch.int8)
    for part in (*kv.layers, *kv.scales):
        part.copy_(torch.arange(part.numel()).view(part.shape) % 100)
    images = BlockImages(kv)
    image: Image = np.zeros(images.nbytes, np.uint8)
    images.read(2, image)
    before = [part.clone() for part in (*kv.layers, *kv.scales)]
    for part in (*kv.layers, *kv.scales):
        part[:, :, 2] = 0
    images.write(2, image)
    assert all(torch.equal(a, b) for a, b in zip(before, (*kv.layers, *kv.scales), strict=True))
    assert images.nbytes == sum(part[:, :, 2].nbytes for part in before)
