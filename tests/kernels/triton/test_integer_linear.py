"""Linear layers of codes against the dequantized weight in float64."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from headway.kernels.integer_weight import IntegerForm, IntegerMatrix, IntegerWeight
from headway.kernels.interface import Kernels
from tests.kernels.native.test_linear_integer import a_weight, in_chunks
from tests.kernels.triton.tolerances import DTYPES, randn

FORMS = {
    "Q4_0": IntegerForm(4, 32, 8), "Q4_1": IntegerForm(4, 32, minimums=True), "AWQ": IntegerForm(4, 64, minimums=True),
    "both": IntegerForm(4, 96, 8, minimums=True), "channels": IntegerForm(4, 192, 8), "Q8_0": IntegerForm(8, 32),
    "Q6_K": IntegerForm(8, 16), "int8 channels": IntegerForm(8, 192), "int8 floors": IntegerForm(8, 64, minimums=True),
}  # fmt: skip


def packed(kernels: Kernels, matrix: IntegerMatrix, bias: torch.Tensor | None = None):  # type: ignore[no-untyped-def]
    assert kernels.integers is not None
    return kernels.integers.pack(matrix, bias)


def close(found: torch.Tensor, wanted: torch.Tensor, size: torch.Tensor) -> None:
    """Codes are exact and sums float32: what is lost is some roundings of the sum of magnitudes `size`, and one to the dtype of the result."""
    last = {torch.float32: 2**-23, torch.float16: 2**-11, torch.bfloat16: 2**-8}[found.dtype]
    assert ((found.cpu().double() - wanted).abs() <= wanted.abs() * last + size * 2**-20).all()


def check(kernels: Kernels, device: torch.device, weight: IntegerWeight, x: torch.Tensor) -> None:
    out = len(weight.codes)
    bias, dense = randn(out, seed=1), weight.dequantized().double()
    residual = randn(len(x), out, dtype=x.dtype, seed=2)
    wanted, size = x.double() @ dense.T, x.double().abs() @ weight_sizes(weight).T
    close(packed(kernels, in_chunks(weight)).widened(x.to(device)), wanted, size)
    layer = packed(kernels, in_chunks(weight, out // 3, out // 2), bias)
    size, wanted = size + bias.abs() + residual.abs(), wanted + bias
    close(layer(x.to(device)), wanted, size)
    close(layer.add_to(residual.to(device), x.to(device)), wanted + residual, size)
    close(layer.activated(x.to(device), "relu"), wanted.relu(), size)


def weight_sizes(weight: IntegerWeight) -> torch.Tensor:
    """What is added up for each number of the matrix, as magnitudes."""
    repeats = weight.form.group
    codes = (weight.codes.double() - weight.form.offset).abs() * weight.scales.double().repeat_interleave(repeats, 1)
    return codes if weight.minimums is None else codes + weight.minimums.double().abs().repeat_interleave(repeats, 1)


@pytest.mark.parametrize("name", FORMS)
def test_every_form(kernels: Kernels, device: torch.device, name: str) -> None:
    check(kernels, device, a_weight(FORMS[name], 75, 192), randn(3, 192))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 20, 70])
def test_rows_and_dtypes(kernels: Kernels, device: torch.device, dtype: torch.dtype, rows: int) -> None:
    check(kernels, device, a_weight(FORMS["Q4_1"], 40, 64), randn(rows, 70, dtype=dtype)[:, 3:67])


def test_no_rows_and_a_form_without_arithmetic(kernels: Kernels, device: torch.device) -> None:
    layer = packed(kernels, in_chunks(a_weight(FORMS["Q4_0"], 20, 64)), torch.ones(20))
    assert layer(torch.empty(0, 64, device=device)).shape == (0, 20)
    assert kernels.integers is not None
    for form in (IntegerForm(4, 16, 8), IntegerForm(4, 48), IntegerForm(8, 8)):
        assert kernels.integers.held_bytes(form, 20, 96) is None
        with pytest.raises(ValueError, match="need a multiple of 32"):
            packed(kernels, in_chunks(a_weight(form, 20, 96)))


def test_bytes(kernels: Kernels) -> None:
    """Counted by hand: codes, and float32 scales and minimums of groups."""
    assert kernels.integers is not None
    assert kernels.integers.held_bytes(FORMS["Q4_0"], 30, 192) == 30 * (96 + 6 * 4)
    assert kernels.integers.held_bytes(FORMS["AWQ"], 30, 192) == 30 * (96 + 3 * 8)
    assert kernels.integers.held_bytes(FORMS["int8 channels"], 30, 192) == 30 * (192 + 4)


def test_what_is_not_finite_stays_in_its_row(kernels: Kernels, device: torch.device) -> None:
    x = torch.zeros(3, 64)
    x[1, 5], x[2, 40] = float("nan"), float("inf")
    found = packed(kernels, in_chunks(a_weight(FORMS["Q4_1"], 20, 64)), torch.ones(20))(x.to(device)).cpu()
    assert torch.equal(found[0], torch.ones(20))
    assert not found[1:].isfinite().any()


@pytest.mark.gpu  # minutes without one
@pytest.mark.timeout(1200)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(list(FORMS)), rows=st.integers(1, 140), out=st.integers(3, 150), groups=st.integers(1, 4), dtype=st.sampled_from(DTYPES)
)
def test_any_shape(kernels: Kernels, device: torch.device, name: str, rows: int, out: int, groups: int, dtype: torch.dtype) -> None:
    width = FORMS[name].group * groups
    check(kernels, device, a_weight(FORMS[name], out, width, seed=rows), randn(rows, width, dtype=dtype))
