"""Window geometry, as properties."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.runtime.long_input.windows import Window, WindowError, covers, deepest, windows


@st.composite
def layouts(draw: st.DrawFn) -> tuple[int, int, int]:
    width = draw(st.integers(1, 60))
    return draw(st.integers(1, 400)), width, draw(st.integers(0, width - 1))


@given(layouts())
def test_every_token_is_in_a_window_and_the_last_ends_with_the_content(layout: tuple[int, int, int]) -> None:
    length, width, overlap = layout
    laid = windows(length, width, overlap)
    assert {token for window in laid for token in range(window.start, window.end)} == set(range(length))
    assert laid[-1].end == length
    assert covers(laid, length)
    assert all(window.end - window.start == min(width, length) for window in laid)


@given(layouts())
def test_neighbours_share_the_overlap_and_no_window_is_idle(layout: tuple[int, int, int]) -> None:
    length, width, overlap = layout
    laid = windows(length, width, overlap)
    assert all(left.end - right.start >= overlap for left, right in pairwise(laid))
    assert all(left.start < right.start for left, right in pairwise(laid))
    assert all(left.end - right.start == overlap for left, right in pairwise(laid[:-1]))
    # One window less would not reach the end.
    assert len(laid) == 1 or laid[-2].end < length


@given(layouts())
def test_the_window_with_most_context_speaks_for_a_token(layout: tuple[int, int, int]) -> None:
    length, width, overlap = layout
    laid = windows(length, width, overlap)
    for token, chosen in enumerate(deepest(laid, length)):
        margins = [min(token - w.start, w.end - 1 - token) if w.start <= token < w.end else -1 for w in laid]
        assert chosen == margins.index(max(margins))


def test_what_cannot_be_laid_out() -> None:
    for length, width, overlap in ((0, 5, 1), (5, 5, 5), (5, 0, 0), (5, 3, -1)):
        with pytest.raises(WindowError):
            windows(length, width, overlap)


def test_a_gap_is_seen() -> None:
    assert not covers([Window(0, 4), Window(5, 9)], 9)
    assert not covers([Window(0, 4)], 5)
    assert not covers([Window(1, 4)], 4)
