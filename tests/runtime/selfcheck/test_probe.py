"""The batch probe tells rounding from leaking, and bits from rounding."""

from __future__ import annotations

import pytest

from headway.runtime.loaded_model import LoadedModel
from headway.runtime.selfcheck.probe import LENGTHS, probe
from tests.runtime.toy_plugins import ToyModel


@pytest.mark.parametrize(
    ("fault", "batch_invariant", "shares"),
    [
        (None, False, True),
        (None, True, True),
        ("rounding", False, True),
        ("rounding", True, False),
        ("leak", False, False),
        ("unstable", False, False),
    ],
)
def test_who_may_share(fault: str | None, batch_invariant: bool, shares: bool) -> None:
    result = probe(ToyModel(fault, 2), batch_invariant=batch_invariant)
    assert result.may_share is shares, result


def test_rows_run_alone_first_and_then_all_together_in_reverse() -> None:
    model = ToyModel(None, 2)
    result = probe(model, batch_invariant=False)
    *alone, together = model.passes
    assert [[len(row) for row in rows] for rows in alone] == [[length] for length in LENGTHS]
    assert together == [rows[0] for rows in reversed(alone)]
    assert result.rows == len(LENGTHS)


def test_two_rows_of_one_length_differ() -> None:
    model = ToyModel(None, 2)
    probe(model, batch_invariant=False)
    second, third = model.passes[1][0], model.passes[2][0]
    assert len(second) == len(third) == 9
    assert second != third


def test_lengths_stay_within_the_model() -> None:
    model = ToyModel(None, 2)
    model.facts = type(model.facts)(2, "float32", {"max_input_tokens": 16})
    probe(model, batch_invariant=False)
    assert max(len(row) for rows in model.passes for row in rows) == 16


@pytest.mark.parametrize(("dtype", "shares"), [("float32", False), ("bfloat16", True), ("int8", True)])
def test_reduced_precision_may_differ_more(dtype: str, shares: bool) -> None:
    class Coarse(ToyModel):
        def forward(self, rows):  # type: ignore[no-untyped-def]
            return [value * (1 + 1e-3 * (len(rows) > 1)) for value in super().forward(rows)]

    model: LoadedModel = Coarse(None, 2)
    model.facts = type(model.facts)(2, dtype, {"max_input_tokens": 1000})
    assert probe(model, batch_invariant=False).may_share is shares
