"""PrefixIndex against a plain model: whole prefixes in a dict."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headway.router.prefixes.cache_events import Cleared, Removed, Stored
from headway.router.prefixes.prefix_index import PrefixIndex
from headway.router.prefixes.token_chain import MOST_TOKENS, TokenChain

BLOCK = 2
tokens = st.lists(st.integers(0, 1), max_size=10)


class Engine(RuleBasedStateMachine):
    """An engine that stores and evicts blocks, and tells. `most`: the bound of the index."""

    most = 1000

    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(self.most)
        self.blocks: dict[int, tuple[int, ...]] = {}  # hash -> all tokens up to the end of the block

    @rule(prompt=tokens, group=st.sampled_from([0, 0, 1]), twice=st.booleans())
    def store(self, prompt: list[int], group: int, twice: bool) -> None:
        """One event for each run of blocks that the engine does not have, as engines do."""
        parent, run = None, list[int]()
        for end in range(BLOCK, len(prompt) + 1, BLOCK):
            name = hash((tuple(prompt[:end]), group))
            if name in self.blocks and not twice:
                self._tell(run, parent, prompt, end - BLOCK, group)
                parent, run = name, []
            else:
                self.blocks[name] = tuple(prompt[:end])
                run.append(name)
        self._tell(run, parent, prompt, len(prompt) // BLOCK * BLOCK, group)

    def _tell(self, run: list[int], parent: int | None, prompt: list[int], end: int, group: int) -> None:
        if run:
            self.index.apply([Stored(run, parent, prompt[end - BLOCK * len(run) : end], BLOCK, group)])

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(self.blocks)), max_size=3, unique=True)) if self.blocks else []
        for name in gone:
            del self.blocks[name]
        self.index.apply([Removed([*gone, 12345], group) for group in (0, 1)])

    @rule()
    def clear(self) -> None:
        self.blocks.clear()
        self.index.apply([Cleared()])

    @rule(prompt=tokens)
    def look(self, prompt: list[int]) -> None:
        held = set(self.blocks.values())
        longest = 0
        while longest + BLOCK <= len(prompt) and tuple(prompt[: longest + BLOCK]) in held:
            longest += BLOCK
        found = self.index.held(TokenChain(prompt))
        assert found <= longest
        if self.most > 100:
            assert found == longest

    @invariant()
    def is_bounded_and_whole(self) -> None:
        assert len(self.index) <= self.most
        assert {block for blocks in self.index._blocks.values() for block in blocks} == set(self.index._key_of)
        assert all(block in self.index._blocks[key] for block, key in self.index._key_of.items())


class BoundedEngine(Engine):
    most = 4


TestEngine = Engine.TestCase
TestEngine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestBoundedEngine = BoundedEngine.TestCase
TestBoundedEngine.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


def test_the_orphans_of_a_missed_parent_are_not_believed() -> None:
    index = PrefixIndex(10)
    index.apply([Stored([2], 1, [3, 4], 2)])
    assert index.held(TokenChain([3, 4])) == index.held(TokenChain([1, 2, 3, 4])) == 0
    index.apply([Stored([1], None, [1, 2], 2), Stored([2], 1, [3, 4], 2)])
    assert index.held(TokenChain([1, 2, 3, 4, 5])) == 4


def test_a_look_keeps_what_it_found_and_a_beginning_outlives_its_end() -> None:
    index = PrefixIndex(3)
    index.apply([Stored([1, 2], None, [1, 1, 2, 2], 2), Stored([3], None, [3, 3], 2)])
    assert index.held(TokenChain([1, 1, 2, 2])) == 4
    index.apply([Stored([4], None, [4, 4], 2)])
    assert index.held(TokenChain([3, 3])) == 0  # told later, but not used since
    assert index.held(TokenChain([1, 1, 2, 2])) == 4
    index.apply([Stored([5], None, [5, 5], 2), Stored([6], None, [6, 6], 2)])
    assert index.held(TokenChain([1, 1, 2, 2])) == 2


def test_another_size_of_blocks_is_another_engine() -> None:
    index = PrefixIndex(10)
    index.apply([Stored([1], None, [1, 2], 2)])
    index.apply([Stored([2], None, [1, 2, 3], 3)])
    assert index.held(TokenChain([1, 2, 9])) == 0
    assert index.held(TokenChain([1, 2, 3])) == 3


@given(st.lists(st.integers(0, 2**32 - 1), max_size=12), st.integers(1, 4))
def test_keys_are_equal_exactly_where_everything_before_is(prompt: list[int], size: int) -> None:
    keys = TokenChain(prompt).keys(size)
    assert len(keys) == len(prompt) // size
    assert TokenChain(prompt[: len(keys) * size]).keys(size) == keys
    if keys:
        changed = [prompt[0] ^ 1, *prompt[1:]]
        assert not set(TokenChain(changed).keys(size)) & set(keys)


def test_of_a_very_long_prompt_the_beginning_is_looked_at() -> None:
    chain = TokenChain(range(MOST_TOKENS + 100))
    assert len(chain.keys(16)) == MOST_TOKENS // 16
    assert chain.length == MOST_TOKENS + 100


@pytest.mark.parametrize("size", [1, 16])
def test_a_prompt_without_a_full_block_has_no_keys(size: int) -> None:
    assert TokenChain([0] * (size - 1)).keys(size) == []


def test_a_name_that_is_given_anew_stands_for_the_new_block_alone() -> None:
    index = PrefixIndex(10)
    index.apply([Stored([1], None, [1, 2], 2), Stored([1], None, [5, 6], 2)])
    assert index.held(TokenChain([1, 2])) == 0
    assert index.held(TokenChain([5, 6])) == 2
    index.apply([Removed([1])])
    assert len(index) == 0
