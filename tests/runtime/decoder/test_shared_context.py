"""The start that rows share is computed once, and answers stay what they are without sharing."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.runtime.decoder.trunk import BLOCK_SIZE
from headway.runtime.decoder.walk import LEAST_REUSED
from headway.runtime.row import Row
from tests.runtime.decoder.trunks import hidden_row, label_row, model_of, tokens, trunk_on

TOLERANCE = 1e-4


def _far(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    return max(float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True))


def _questions(state: tuple[int, ...], count: int, seed: int = 50) -> list[Row]:
    return [label_row(state + tokens(seed + i, 5 + i)) for i in range(count)]


def test_ten_questions_compute_the_state_once(root: Path) -> None:
    state = tokens(1, 300)
    rows = _questions(state, 10)
    suffixes = sum(len(row.token_ids) - len(state) for row in rows)
    shared, alone = trunk_on(model_of("smollm", root)), trunk_on(model_of("smollm", root), share=False)
    assert _far(shared.read(rows), alone.read(rows)) < TOLERANCE
    total = sum(len(row.token_ids) for row in rows)
    assert alone.counts.computed_tokens == total
    assert alone.counts.shared_tokens == 0
    assert shared.counts.computed_tokens + shared.counts.shared_tokens == total
    # Each question but the first computes at most what its last shared block is short of.
    assert shared.counts.computed_tokens <= len(state) + suffixes + 9 * (BLOCK_SIZE - 1)
    assert shared.counts.steps == 1


def test_states_are_kept_apart(root: Path) -> None:
    rows = [row for state in (tokens(1, 100), tokens(2, 100)) for row in _questions(state, 3)]
    rows = rows[::2] + rows[1::2]
    shared, alone = trunk_on(model_of("qwen3", root)), trunk_on(model_of("qwen3", root), share=False)
    assert _far(shared.read(rows), alone.read(rows)) < TOLERANCE
    assert shared.counts.shared_tokens == 4 * 96


def test_a_branch_of_a_branch_is_shared_too(root: Path) -> None:
    state, question = tokens(1, 64), tokens(2, 48)
    rows = [label_row(state + question + (9,)), label_row(state + question + (10,)), label_row((*state, 11))]
    trunk = trunk_on(model_of("smollm", root))
    trunk.read(rows)
    assert trunk.counts.shared_tokens == 64 + 48 + 64


def test_positions_that_are_read_are_computed_however_much_is_known(root: Path) -> None:
    start = tokens(1, 96)
    rows = [hidden_row((*start, 7, 8), 40, 97), hidden_row((*start, 9), 33, 96), hidden_row((*start, 10), 96)]
    shared, alone = trunk_on(model_of("smollm", root)), trunk_on(model_of("smollm", root), share=False)
    assert _far(shared.read(rows), alone.read(rows)) < TOLERANCE
    assert shared.counts.shared_tokens == 32 + 96


def test_equal_rows_leave_the_last_token_to_compute(root: Path) -> None:
    row = label_row(tokens(1, 64))
    trunk = trunk_on(model_of("smollm", root))
    first, second = trunk.read([row, row])
    assert np.abs(first - second).max() < TOLERANCE
    assert trunk.counts.shared_tokens == 48


def test_a_long_start_is_found_by_the_next_forward_pass(root: Path) -> None:
    state = tokens(1, LEAST_REUSED + 20)
    trunk, alone = trunk_on(model_of("smollm", root)), trunk_on(model_of("smollm", root), share=False)
    one, other = _questions(state, 2)
    trunk.read([one])
    before = trunk.counts.computed_tokens
    assert _far(trunk.read([other]), alone.read([other])) < TOLERANCE
    assert trunk.counts.computed_tokens - before < 50


def test_a_short_row_is_computed_anew_to_the_same_bits(root: Path) -> None:
    row = label_row(tokens(1, LEAST_REUSED - 1))
    trunk = trunk_on(model_of("smollm", root))
    first, second = trunk.read([row])[0], trunk.read([row])[0]
    assert first.tobytes() == second.tobytes()
    assert trunk.counts.shared_tokens == 0


def test_a_long_row_is_computed_to_the_same_bits_by_a_trunk_that_forgets(root: Path) -> None:
    row = label_row(tokens(1, LEAST_REUSED + 50))
    trunk = trunk_on(model_of("smollm", root))
    first = trunk.read([row])[0]
    trunk.forget()
    assert trunk.read([row])[0].tobytes() == first.tobytes()
    assert trunk.counts.shared_tokens == 0
    trunk.read([row])
    assert trunk.counts.shared_tokens > 0


def test_short_rows_share_within_a_forward_pass_that_an_earlier_one_resembles(root: Path) -> None:
    state = tokens(1, 64)
    trunk = trunk_on(model_of("smollm", root))
    trunk.read(_questions(state, 3))
    before = trunk.counts.shared_tokens
    trunk.read(_questions(state, 3, seed=70))
    assert trunk.counts.shared_tokens - before == 2 * 64


_TREES = st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), min_size=1, max_size=4), min_size=1, max_size=8)


@given(trees=_TREES, step_tokens=st.integers(16, 200), cache_tokens=st.sampled_from([400, 1024]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_of_rows_reads_the_same_in_any_steps(
    root: Path, trees: list[list[tuple[int, int]]], step_tokens: int, cache_tokens: int
) -> None:
    """Each row is a path of pieces: equal pieces at equal places are equal tokens, so rows share starts of all lengths."""
    rows = []
    for number, path in enumerate(trees):
        ends = accumulate(length for _, length in path)
        pieces = [tokens(1000 * choice + end, length) for (choice, length), end in zip(path, ends, strict=True)]
        row = tuple(token for piece in pieces for token in piece)
        rows.append(hidden_row(row, len(row) - 1, len(row) // 2) if number % 3 == 0 else label_row(row))
    model = model_of("smollm", root)
    trunk = trunk_on(model, step_tokens=step_tokens, cache_tokens=cache_tokens)
    expected = trunk_on(model, share=False).read(rows)
    for _ in range(2):
        assert _far(trunk.read(rows), expected) < TOLERANCE
        assert trunk.held_blocks == 0
    counts = trunk.counts
    assert counts.computed_tokens + counts.shared_tokens == 2 * sum(len(row.token_ids) for row in rows)


@pytest.mark.parametrize("share", [True, False])
def test_a_cache_of_one_row_serves_any_number_of_them(root: Path, share: bool) -> None:
    rows = _questions(tokens(1, 380), 6)
    trunk = trunk_on(model_of("smollm", root), share=share, cache_tokens=400)
    expected = trunk_on(model_of("smollm", root), share=False, cache_tokens=4096).read(rows)
    assert _far(trunk.read(rows), expected) < TOLERANCE
    assert trunk.held_blocks == 0


def test_blocks_of_a_row_that_fills_its_step_are_free_for_the_next(root: Path) -> None:
    rows = [label_row(tokens(seed, 400)) for seed in (1, 2)]
    trunk = trunk_on(model_of("smollm", root), step_tokens=400, cache_tokens=400)
    expected = trunk_on(model_of("smollm", root), share=False, cache_tokens=4096).read(rows)
    assert _far(trunk.read(rows), expected) < TOLERANCE
