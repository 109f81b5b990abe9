"""Linear layers of 8-bit floats: the matrix product is torch's, which a CPU has too; refused where a device has none."""

from __future__ import annotations

import pytest
import torch

from headway.errors import ConfigError
from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.triton.float8_linear import (
    Float8Linear,
    can_multiply,
    has_float8,
    pack_float8_linear,
    round_tokens,
)
from headway.quantization.online import round_weight
from tests.kernels.triton.tolerances import DTYPES, randn

ROWS = [16, 32]


@pytest.fixture
def float8_device(device: torch.device) -> torch.device:
    """The CPU where a GPU is too old."""
    return device if has_float8(device) else torch.device("cpu")


def a_weight(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """[48, 64], its parts rounded to FP8 as `--quantization fp8` does; the second is much larger."""
    weight = randn(48, 64, dtype=dtype)
    weight[16:] *= 30
    for part in torch.split(weight, ROWS):
        round_weight(part, "fp8")
    return weight


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_matrices_get_their_codes_back(dtype: torch.dtype) -> None:
    weight = a_weight(dtype)
    matrix = Float8Matrix.of(weight, ROWS)
    assert matrix.codes.dtype == torch.float8_e4m3fn
    found = matrix.codes.float() * matrix.scales[:, None]
    last = {torch.float32: 2**-22, torch.bfloat16: 2**-7, torch.float16: 2**-10}[dtype]  # the dtype in between rounds the code and the largest
    assert ((found - weight.float()).abs() <= weight.float().abs() * last).all()
    assert torch.equal(Float8Matrix.of(torch.zeros(2, 16), [2]).scales, torch.ones(2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(float8_device: torch.device, dtype: torch.dtype) -> None:
    """float64 products of the rounded numbers: what is lost is some roundings of float32 sums, and one to the dtype of the result."""
    device, matrix, bias = float8_device, Float8Matrix.of(a_weight(), ROWS), randn(48, seed=1)
    x, residual = randn(5, 64, dtype=dtype, seed=2) * torch.logspace(-2, 1, 5)[:, None].to(dtype), randn(5, 48, dtype=dtype, seed=3)
    codes, scales = round_tokens(x)
    rounded = codes.double() * scales.double()
    assert ((rounded - x.double()).abs() <= x.abs().double() / 16 + scales.double() * 2**-10).all()
    dense = matrix.codes.double() * matrix.scales.double()[:, None]
    wanted, size = rounded @ dense.T + bias, rounded.abs() @ dense.abs().T + bias.abs() + residual.abs()
    last = {torch.float32: 2**-23, torch.float16: 2**-11, torch.bfloat16: 2**-8}[dtype]
    layer = Float8Linear(device, matrix, bias)
    for found, exact in (
        (layer(x.to(device)), wanted), (layer.add_to(residual.to(device), x.to(device)), wanted + residual),
        (layer.activated(x.to(device), "relu"), wanted.relu()),
    ):  # fmt: skip
        assert found.dtype == dtype
        assert ((found.cpu().double() - exact).abs() <= exact.abs() * last + size * 2**-13).all()
    assert layer(x[:0].to(device)).shape == (0, 48)


def test_what_is_not_finite_stays_in_its_row() -> None:
    x = torch.ones(3, 64)
    x[1, 3], x[2, 3] = float("nan"), float("inf")
    codes, scales = round_tokens(x)
    assert (codes.float() * scales).isnan().any(-1).tolist() == [False, True, True]


def test_refused_without_the_arithmetic() -> None:
    assert not can_multiply(48, 40)
    with pytest.raises(ConfigError, match=r"FP8 matrix of 48 x 64 on cpu: .* capability 8\.9") as error:
        pack_float8_linear(torch.device("cpu"), Float8Matrix.of(a_weight(), ROWS), None)
    assert error.value.reason == "float8_unsupported"
