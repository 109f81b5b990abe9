"""Linear layers of float numbers against float64 products of the same numbers."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from headway.kernels.interface import Activation
from headway.kernels.native.linear import pack_linear
from headway.kernels.native.tape import Tape
from headway.kernels.reference import ACTIVATIONS

FLOATS = (torch.float32, torch.bfloat16)


def close(got: torch.Tensor, exact: torch.Tensor, inputs: int) -> None:
    """`exact` float64 is of order sqrt(inputs). Each of as many additions rounds a sum of at most that order, in one direction or the
    other: an error of order inputs * 2^-24, of which four times are allowed. Then comes one rounding to the dtype of the result."""
    last = 2**-8 if got.dtype == torch.bfloat16 else 2**-23
    allowed = exact.abs() * last + 2.4e-7 * inputs + 1e-6
    assert ((got.double() - exact).abs() <= allowed).all()


@given(
    rows=st.integers(1, 40), inputs=st.integers(1, 130), width=st.integers(1, 100), weight_dtype=st.sampled_from(FLOATS),
    x_dtype=st.sampled_from(FLOATS), gap=st.integers(0, 3), bias=st.booleans(),
)  # fmt: skip
def test_products_of_any_shape(
    tape: Tape, rows: int, inputs: int, width: int, weight_dtype: torch.dtype, x_dtype: torch.dtype, gap: int, bias: bool
) -> None:
    generator = torch.Generator().manual_seed(rows * 1000003 + inputs * 1009 + width)
    weight = torch.randn(width, inputs, generator=generator).to(weight_dtype)
    added = torch.randn(width, generator=generator).to(weight_dtype) if bias else None
    # What bfloat16 holds, in either dtype: a product of bfloat16 may round its inputs to that.
    x = torch.randn(rows, inputs + gap, generator=generator).bfloat16().to(x_dtype)[:, :inputs]
    residual = torch.randn(rows, width + gap, generator=generator).to(x_dtype)[:, :width]
    packed = pack_linear(tape, weight, added)
    exact = x.double() @ weight.double().T + (0 if added is None else added.double())
    got = packed(x)
    assert got.dtype == x_dtype
    close(got, exact, inputs)
    close(packed.widened(x), exact, inputs)
    close(packed.add_to(residual, x), exact + residual.double(), inputs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh", "relu"])
def test_activations_are_rounded_once(tape: Tape, dtype: torch.dtype, activation: Activation) -> None:
    generator = torch.Generator().manual_seed(7)
    weight, bias = torch.randn(70, 64, generator=generator).to(dtype), torch.randn(70, generator=generator).to(dtype)
    x = torch.randn(9, 64, generator=generator).to(dtype)
    exact = ACTIVATIONS[activation](x.double() @ weight.double().T + bias.double())
    close(pack_linear(tape, weight, bias).activated(x, activation), exact, 64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_many_rows_and_wide_inputs(tape: Tape, dtype: torch.dtype) -> None:
    """More panels and tiles than members, and rows that lie 8 KiB apart."""
    generator = torch.Generator().manual_seed(3)
    weight, x = (torch.randn(n, 4096, generator=generator).to(dtype) for n in (160, 75))
    close(pack_linear(tape, weight, None).widened(x), x.double() @ weight.double().T, 4096)


def test_results_do_not_depend_on_other_rows(tape: Tape) -> None:
    """Each sum adds its products in the same order, wherever its row is: what a token gets is the same in every batch."""
    generator = torch.Generator().manual_seed(5)
    weight, x = torch.randn(64, 200, generator=generator), torch.randn(30, 200, generator=generator)
    packed = pack_linear(tape, weight, None)
    alone = torch.cat([packed(row[None]) for row in x])
    for rows in (2, 5, 12, 13, 30):
        assert torch.equal(packed(x[:rows]), alone[:rows])


def test_weights_with_gaps_and_transposed_ones(tape: Tape) -> None:
    generator = torch.Generator().manual_seed(6)
    stored, x = torch.randn(50, 60, generator=generator), torch.randn(3, 50, generator=generator)
    for weight in (stored[:, :50], stored.T[:, :50]):
        close(pack_linear(tape, weight, None)(x), x.double() @ weight.double().T, 50)


def test_infinities_and_nans_stay_where_they_are(tape: Tape) -> None:
    weight, x = torch.ones(40, 33), torch.ones(3, 33)
    x[1, 5] = float("nan")
    x[2, 6] = float("inf")
    got = pack_linear(tape, weight, None)(x)
    assert torch.equal(got[0], torch.full((40,), 33.0))
    assert got[1].isnan().all()
    assert torch.isinf(got[2]).all()


def test_recorded_call_runs_with_fewer_rows(tape: Tape) -> None:
    generator = torch.Generator().manual_seed(8)
    weight, x = torch.randn(64, 48, generator=generator), torch.randn(20, 48, generator=generator)
    packed = pack_linear(tape, weight, None)
    with tape.record(tokens=20, outputs=3, sequences=2) as recording:
        result = packed(x)
    for rows in (20, 13, 1):
        recording.run(rows, 1, 1)
        assert torch.equal(result[:rows], packed(x[:rows]))


def test_a_program_keeps_the_scratch_that_it_was_recorded_with(tape: Tape) -> None:
    """A larger call in between gets larger scratch; that of the recorded call must not go."""
    small, large = (pack_linear(tape, torch.ones(32, inputs), None) for inputs in (16, 70000))
    x = torch.ones(3, 16).bfloat16()
    small(x)
    before = tape.scratch(0)
    with tape.record(tokens=3, outputs=2, sequences=1) as recording:
        result = small(x)
    large(torch.ones(64, 70000))
    assert [each.address for each in recording.arena.scratches] == [before]
    recording.run(3, 1, 1)
    assert torch.equal(result, torch.full((3, 32), 16.0).bfloat16())
