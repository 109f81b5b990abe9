"""A slice of a stored tensor has the bytes that slicing the whole array gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.artifacts.card import TensorInfo
from headway.artifacts.sliced_tensor import sliced


def _stored(array: np.ndarray, dtype: str) -> tuple[TensorInfo, torch.Tensor]:
    info = TensorInfo("t", dtype, array.shape, array.nbytes, Path("f"), 64)
    return info, torch.frombuffer(bytearray(array.tobytes()), dtype=torch.uint8)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[tuple[range, ...], ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    kept = []
    for size in shape:
        ranges = []
        for _ in range(draw(st.integers(1, 3))):
            start = draw(st.integers(0, size - 1))
            ranges.append(range(start, draw(st.integers(start + 1, size))))
        kept.append(tuple(ranges))
    return shape, tuple(kept)


@given(cuts())
def test_any_ranges_of_any_dimensions(case: tuple[tuple[int, ...], tuple[tuple[range, ...], ...]]) -> None:
    shape, kept = case
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    info, raw = _stored(array, "F32")
    part = sliced(info, kept)
    expected = array
    for dim, ranges in enumerate(kept):
        expected = np.take(expected, [i for each in ranges for i in each], axis=dim)
    assert part.shape == expected.shape
    assert part.nbytes == expected.nbytes
    assert part.of(raw).numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


@given(st.integers(0, 3), cuts())
def test_one_entry_of_a_stack(index: int, case: tuple[tuple[int, ...], tuple[tuple[range, ...], ...]]) -> None:
    shape, kept = case
    array = np.arange(4 * int(np.prod(shape)), dtype=np.int16).reshape(4, *shape)
    info, raw = _stored(array, "I16")
    item = sliced(info, ((range(4),), *kept)).item(index)
    own = torch.frombuffer(bytearray(raw.numpy().tobytes()), dtype=torch.uint8)[item.offset - 64 :][: item.whole.nbytes]
    expected = array[index]
    for dim, ranges in enumerate(kept):
        expected = np.take(expected, [i for each in ranges for i in each], axis=dim)
    assert item.of(own).numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


def test_blocks_stay_whole() -> None:
    """Q8_0: 34 bytes hold 32 numbers."""
    raw = np.arange(2 * 3 * 34, dtype=np.uint8).reshape(2, 3, 34)
    info = TensorInfo("t", "Q8_0", (2, 96), raw.nbytes, Path("f"), 0)
    part = sliced(info, ((range(1, 2),), (range(32, 96),)))
    assert part.shape == (1, 64)
    assert part.nbytes == 68
    assert part.of(torch.frombuffer(bytearray(raw.tobytes()), dtype=torch.uint8)).numpy().tobytes() == raw[1, 1:].tobytes()
    with pytest.raises(ValueError, match="32 numbers in a block"):
        sliced(info, ((range(2),), (range(16, 96),)))
