"""Native norms, rotation, activations and moves of rows against the reference, over random shapes, strides and edges.

Tolerances. float32: sums run in another order than torch's, which moves the last bits (4e-6 of the size of the result). bfloat16: both sides
round once from float32, so a result next to a rounding border may land on the other side: one unit in the last place, 2^-7.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.kernels.interface import Activation
from headway.kernels.native import pointwise
from headway.kernels.native.tape import Tape
from headway.kernels.reference import REFERENCE

DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: {"atol": 4e-6, "rtol": 4e-6}, torch.bfloat16: {"atol": 2e-3, "rtol": 2.0**-7}}
WIDTHS = st.one_of(st.integers(1, 70), st.sampled_from((576, 1000, 4096, 5001)))

shapes = given(rows=st.sampled_from((0, 1, 2, 3, 17)), width=WIDTHS, dtype=st.sampled_from(DTYPES), gap=st.sampled_from((0, 3)), seed=st.integers(0, 99))
few = settings(max_examples=40, deadline=None)


def random(seed: int, *sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def strided(seed: int, rows: int, width: int, gap: int, dtype: torch.dtype) -> torch.Tensor:
    """[rows, width] with `gap` numbers of something else between rows."""
    return random(seed, rows, width + gap, dtype=dtype)[:, :width]


def same(ours: torch.Tensor, reference: torch.Tensor) -> None:
    assert ours.dtype == reference.dtype
    torch.testing.assert_close(ours, reference, **TOLERANCE[ours.dtype])


@few
@shapes
@pytest.mark.parametrize("wide", [False, True])
def test_rms_norm(tape: Tape, wide: bool, rows: int, width: int, dtype: torch.dtype, gap: int, seed: int) -> None:
    x, weight = strided(seed, rows, width, gap, dtype) * 3, random(seed + 1, width, dtype=torch.float32 if wide else dtype)
    same(pointwise.rms_norm(tape, x, weight, 1e-5), REFERENCE.rms_norm(x, weight, 1e-5))


@few
@given(rows=st.integers(0, 5), width=WIDTHS, scale=st.sampled_from((1.0, 0.22)), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@pytest.mark.parametrize("wide", [False, True])
def test_rms_norm_added_to_a_residual(tape: Tape, wide: bool, rows: int, width: int, scale: float, dtype: torch.dtype, seed: int) -> None:
    residual, x = random(seed, rows, width, dtype=dtype), random(seed + 1, rows, width, dtype=dtype) * 3
    weight = random(seed + 2, width, dtype=torch.float32 if wide else dtype)
    ours, want = pointwise.add_rms_norm(tape, residual, x, weight, 1e-5, scale), REFERENCE.add_rms_norm(residual, x, weight, 1e-5, scale)
    # The reference rounds the norm before it adds: half a unit in the last place of the norm more.
    unit = {torch.float32: 2e-6, torch.bfloat16: 2.0**-8}[dtype]
    torch.testing.assert_close(ours.float(), want.float(), atol=float(16 * unit), rtol=4 * unit)


@few
@shapes
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_layer_norm(tape: Tape, wide: bool, biased: bool, rows: int, width: int, dtype: torch.dtype, gap: int, seed: int) -> None:
    kind = torch.float32 if wide else dtype
    x, weight = strided(seed, rows, width, gap, dtype) * 3 + 2, random(seed + 1, width, dtype=kind)
    bias = random(seed + 2, width, dtype=kind) if biased else None
    same(pointwise.layer_norm(tape, x, weight, bias, 1e-2), REFERENCE.layer_norm(x, weight, bias, 1e-2))


def test_norms_of_more_than_two_dimensions(tape: Tape) -> None:
    x, weight = random(0, 2, 3, 20, dtype=torch.float32), random(1, 20, dtype=torch.float32)
    same(pointwise.rms_norm(tape, x, weight, 1e-6), REFERENCE.rms_norm(x, weight, 1e-6))


@few
@given(count=st.integers(0, 9), heads=st.integers(1, 5), size=st.integers(1, 80), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@pytest.mark.parametrize("name", ["norm_heads", "layer_norm_heads"])
def test_norms_of_heads_change_only_their_heads(tape: Tape, name: str, count: int, heads: int, size: int, dtype: torch.dtype, seed: int) -> None:
    rows, weight = random(seed, count, heads + 2, size, dtype=dtype) + 1, random(seed + 1, heads, size, dtype=dtype)
    ours, reference = rows.clone(), rows.clone()
    getattr(pointwise, name)(tape, ours[:, :heads], weight, 1e-2)
    getattr(REFERENCE, name)(reference[:, :heads], weight, 1e-2)
    same(ours, reference)
    assert torch.equal(ours[:, heads:], rows[:, heads:])


@few
@given(
    count=st.integers(0, 9), heads=st.integers(1, 5), half=st.integers(1, 70), still=st.sampled_from((0, 6)), dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_rotation_turns_the_leading_dimensions_of_its_heads(
    tape: Tape, count: int, heads: int, half: int, still: int, dtype: torch.dtype, seed: int
) -> None:
    rows = random(seed, count, heads + 1, 2 * half + still, dtype=dtype)
    cos, sin = (random(seed + i, count, 1, 2 * half, dtype=dtype) for i in (1, 2))
    ours, reference = rows.clone(), rows.clone()
    pointwise.rotate(tape, ours[:, :heads, : 2 * half], cos, sin)
    REFERENCE.rotate(reference[:, :heads, : 2 * half], cos, sin)
    same(ours, reference)
    assert torch.equal(ours[:, heads:], rows[:, heads:])
    assert torch.equal(ours[..., 2 * half :], rows[..., 2 * half :])


@few
@given(
    positions=st.lists(st.integers(0, 1_000_000), max_size=9), half=st.integers(1, 140), factor=st.sampled_from((1.0, 1.25)),
    dtype=st.sampled_from(DTYPES),
)  # fmt: skip
def test_rotary_tables(tape: Tape, positions: list[int], half: int, factor: float, dtype: torch.dtype) -> None:
    frequencies = 1 / 10_000 ** (torch.arange(half) / half)
    index = torch.tensor(positions, dtype=torch.int64)
    ours, reference = pointwise.rotary_tables(tape, index, frequencies, factor, dtype), REFERENCE.rotary_tables(index, frequencies, factor, dtype)
    for mine, theirs in zip(ours, reference, strict=True):
        assert mine.shape == theirs.shape
        # Within one unit in the last place of numbers up to 1: torch's own cosine is that exact.
        torch.testing.assert_close(mine, theirs, atol=2.0**-23 if dtype is torch.float32 else 2.0**-8, rtol=2.0**-23 if dtype is torch.float32 else 2.0**-7)


def test_rotary_tables_of_float32_are_the_cosines_of_float64(tape: Tape) -> None:
    index, frequencies = torch.arange(0, 300_000, 997), 1 / 10_000 ** (torch.arange(32) / 32)
    cos, sin = pointwise.rotary_tables(tape, index, frequencies, 1.0, torch.float32)
    angles = (index.float()[:, None] * frequencies).double()
    torch.testing.assert_close(cos[:, 0, :32], angles.cos().float(), atol=1e-12, rtol=2.0**-23)
    torch.testing.assert_close(sin[:, 0, 32:], angles.sin().float(), atol=1e-12, rtol=2.0**-23)


@few
@shapes
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh"])
def test_gates(tape: Tape, name: Activation, rows: int, width: int, dtype: torch.dtype, gap: int, seed: int) -> None:
    x = strided(seed, rows, 2 * width, gap, dtype) * 3
    same(pointwise.gate(tape, name, x), getattr(REFERENCE, f"{name}_gate")(x))


@few
@shapes
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "relu"])
def test_activations(tape: Tape, name: Activation, rows: int, width: int, dtype: torch.dtype, gap: int, seed: int) -> None:
    x = strided(seed, rows, width, gap, dtype) * 3
    kept = x.clone()
    same(pointwise.activate(tape, name, x), REFERENCE.activations[name](x))
    assert torch.equal(x, kept)


@few
@given(
    index=st.lists(st.integers(0, 10), max_size=20), width=WIDTHS, scale=st.sampled_from((1.0, 25.25)), gap=st.sampled_from((0, 3)),
    dtype=st.sampled_from(DTYPES),
)  # fmt: skip
def test_rows_by_index(tape: Tape, index: list[int], width: int, scale: float, gap: int, dtype: torch.dtype) -> None:
    table, places = strided(0, 11, width, gap, dtype), torch.tensor(index, dtype=torch.int64)
    x = random(1, len(index), width, dtype=dtype)
    same(pointwise.embed(tape, table, places, scale), REFERENCE.embed(table, places, scale))
    same(pointwise.add_rows(tape, x, table, places), REFERENCE.add_rows(x, table, places))
    assert torch.equal(pointwise.select_rows(tape, table, places), table[places])


@pytest.mark.parametrize("place", [11, -1, -(2**40)])
def test_a_row_that_is_not_there_is_an_error_and_nothing_else_is(tape: Tape, place: int) -> None:
    table = random(0, 11, 40, dtype=torch.bfloat16)
    with pytest.raises(IndexError, match=f"row {place} of a table of 11 rows"):
        pointwise.embed(tape, table, torch.tensor([3, place]), 1.0)
    assert torch.equal(pointwise.embed(tape, table, torch.tensor([3]), 1.0), table[3:4])


@few
@given(rows=st.integers(0, 9), width=WIDTHS, scale=st.sampled_from((1.0, 0.22)), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_scaled_addition(tape: Tape, rows: int, width: int, scale: float, dtype: torch.dtype, seed: int) -> None:
    residual, x = random(seed, rows, width, dtype=dtype), random(seed + 1, rows, width, dtype=dtype)
    same(pointwise.add_scaled(tape, residual, x, scale), REFERENCE.add_scaled(residual, x, scale))


@few
@shapes
@pytest.mark.parametrize(("divisor", "softcap"), [(None, None), (8.0, None), (None, 30.0), (3.0, 5.0)])
def test_logits(
    tape: Tape, divisor: float | None, softcap: float | None, rows: int, width: int, dtype: torch.dtype, gap: int, seed: int
) -> None:  # fmt: skip
    x = strided(seed, rows, width, gap, dtype) * 20
    reference = REFERENCE.finish_logits(x.clone(), divisor, softcap)
    ours = pointwise.finish_logits(tape, x.clone() if gap == 0 else x, divisor, softcap)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, reference, atol=2e-6, rtol=2e-6)
