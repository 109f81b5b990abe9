"""BlockPool against a plain model of what it promises."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headway.kvcache.block_pool import NULL_BLOCK, BlockPool


class PoolMachine(RuleBasedStateMachine):
    """Holders are lists of blocks; the model knows the references and, for each block, what it last published."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(9)
        self.holders: list[list[int]] = []
        self.contents: dict[int, bytes] = {}

    @rule(count=st.integers(0, 9))
    def allocate(self, count: int) -> None:
        free = self.pool.num_free
        got = self.pool.allocate(count)
        assert (got is None) == (count > free)
        if got is not None:
            assert len(set(got)) == count
            for block in got:
                assert all(block not in h for h in self.holders), "a held block was handed out"
                self.contents.pop(block, None)
            self.holders.append(got)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.pool.release(self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1))))

    @precondition(lambda self: any(self.holders))
    @rule(data=st.data(), name=st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"]))
    def publish(self, data: st.DataObject, name: bytes) -> None:
        block = data.draw(st.sampled_from([b for h in self.holders for b in h]))
        self.pool.publish(block, name)
        if block not in self.contents and name not in self.contents.values():
            self.contents[block] = name

    @rule(names=st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"]), max_size=3))
    def share(self, names: list[bytes]) -> None:
        found = self.pool.find(names)
        by_name = {v: k for k, v in self.contents.items()}
        expected = []
        for name in names:
            if name not in by_name:
                break
            expected.append(by_name[name])
        assert found == expected
        self.pool.hold(found)
        self.holders.append(found)

    @precondition(lambda self: self.contents)
    @rule(data=st.data())
    def unpublish(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(self.contents)))
        self.pool.unpublish([block])
        del self.contents[block]

    @invariant()
    def references_and_free_count(self) -> None:
        counts = [0] * 9
        for holder in self.holders:
            for block in holder:
                counts[block] += 1
        assert [self.pool.references(b) for b in range(9)] == counts
        assert counts[NULL_BLOCK] == 0
        assert self.pool.num_free == sum(c == 0 for c in counts[1:])
        assert self.pool.usage == pytest.approx(sum(c > 0 for c in counts[1:]) / 8)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_unhashed_blocks_are_evicted_before_hashed_ones_and_those_oldest_first() -> None:
    pool = BlockPool(5)
    a, b, c, d = (pool.allocate(1) or [] for _ in range(4))
    pool.publish(a[0], b"A")
    pool.publish(b[0], b"B")
    pool.release(b)
    pool.release(a)
    pool.release(c)
    pool.release(d)
    order = [pool.allocate(1) for _ in range(4)]
    assert order == [d, c, b, a]


def test_the_tail_of_a_sequence_is_evicted_before_its_prefix() -> None:
    pool = BlockPool(4)
    blocks = pool.allocate(3)
    assert blocks
    for block, name in zip(blocks, (b"1", b"2", b"3"), strict=True):
        pool.publish(block, name)
    pool.release(blocks)
    assert pool.allocate(1) == [blocks[2]]
    assert pool.find([b"1", b"2", b"3"]) == blocks[:2]


def test_releasing_too_often_is_an_error() -> None:
    pool = BlockPool(2)
    blocks = pool.allocate(1)
    assert blocks
    pool.release(blocks)
    with pytest.raises(RuntimeError, match="released more often"):
        pool.release(blocks)


def test_reset_forgets_prefixes_but_only_when_nothing_is_held() -> None:
    pool = BlockPool(3)
    blocks = pool.allocate(1)
    assert blocks
    pool.publish(blocks[0], b"x")
    assert not pool.reset()
    pool.release(blocks)
    assert pool.find([b"x"]) == blocks
    assert pool.reset()
    assert pool.find([b"x"]) == []
