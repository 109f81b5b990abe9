"""Our confidence against the formulas in jevcompat, another program's reading of the protocol."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jevcompat import validate

from headway.decisions.confidence import choice_confidence, score_confidence

distributions = st.lists(st.floats(0.001, 1), min_size=1, max_size=40).map(lambda parts: np.array(parts) / sum(parts))


@given(distributions)
def test_equals_the_formulas_of_jevcompat(p: np.ndarray) -> None:
    assert choice_confidence(p) == pytest.approx(validate.choice_confidence(list(p)), abs=1e-12)
    assert score_confidence(p) == pytest.approx(validate.score_confidence(list(p)), abs=1e-12)


def test_known_values() -> None:
    assert choice_confidence(np.array([0.25] * 4)) == 0
    assert choice_confidence(np.array([0.7, 0.3])) == pytest.approx(0.4)
    assert score_confidence(np.array([0.5, 0.0, 0.5])) == 0
    assert score_confidence(np.array([0.1, 0.8, 0.1])) == pytest.approx(0.7)
    assert choice_confidence(np.array([1.0])) == score_confidence(np.array([1.0])) == 1
