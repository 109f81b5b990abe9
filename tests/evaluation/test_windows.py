from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.evaluation.windows import windows


@given(length=st.integers(0, 300), width=st.integers(1, 40), data=st.data())
def test_every_token_is_scored_once_and_has_its_context(length: int, width: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, width))
    found = windows(length, width, stride)
    assert [token for window in found for token in range(window.scored, window.end)] == list(range(length))
    for window in found:
        assert 0 <= window.start <= window.scored < window.end
        assert window.end - window.start <= width
    for window in found[1:]:
        assert window.scored - window.start >= width - stride


@pytest.mark.parametrize("stride", [0, 5])
def test_a_stride_beyond_the_window(stride: int) -> None:
    with pytest.raises(ValueError, match="stride"):
        windows(10, 4, stride)
