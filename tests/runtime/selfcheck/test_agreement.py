"""`difference` sees what rounding makes and what it cannot make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.runtime.row import ItemFailure
from headway.runtime.selfcheck.agreement import APART, difference, is_finite

F32 = np.float32


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1.0, 1.0, 0.0),
        (0.25, 0.5, 0.25),
        (100.0, 101.0, 1 / 101),
        (np.array([0.5, 0.25], F32), np.array([0.5, 0.75], F32), 0.5),
        (np.array([1000.0, 1.0], F32), np.array([1000.0, 2.0], F32), 1e-3),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0]}, 0.0),
        (ItemFailure("invalid_input", "x"), ItemFailure("invalid_input", "x"), 0.0),
        (None, None, 0.0),
        ([], [], 0.0),
        (np.zeros((0, 3), F32), np.zeros((0, 3), F32), 0.0),
    ],
)
def test_how_far_apart(first: Any, second: Any, expected: float) -> None:
    assert difference(first, second) == pytest.approx(expected)
    assert difference(second, first) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "b"),
        ("1", 1),
        (True, 1),
        (None, 0.0),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], [1, 2]),
        (np.zeros(2, F32), np.zeros(3, F32)),
        (np.zeros(2, F32), np.zeros(2, np.float64)),
        (np.array([np.nan], F32), np.array([0.0], F32)),
        (ItemFailure("invalid_input"), ItemFailure("unavailable")),
        (ItemFailure("invalid_input"), np.zeros(2, F32)),
        (math.inf, 1.0),
    ],
)
def test_different_in_kind(first: Any, second: Any) -> None:
    assert difference(first, second) == APART


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)))  # fmt: skip
def test_everything_equals_itself(value: Any) -> None:
    assert difference(value, value) == 0.0
    assert is_finite(value)


@pytest.mark.parametrize("value", [math.nan, [1.0, math.inf], {"a": {"b": [math.nan]}}, np.array([1.0, np.inf], F32)])
def test_not_finite(value: Any) -> None:
    assert not is_finite(value)
