"""Rounding beside that of the compressed-tensors library."""

from __future__ import annotations

import pytest
import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
from compressed_tensors.quantization.utils import calculate_qparams

from headway.compression.method import METHODS
from headway.compression.rounding import Grid, grid_of, nearest

WEIGHT = torch.randn(48, 96, generator=torch.Generator().manual_seed(3)) * 0.2


@pytest.mark.parametrize("symmetric", [True, False])
def test_groups_of_4_bits(symmetric: bool) -> None:
    args = QuantizationArgs(num_bits=4, strategy="group", group_size=32, symmetric=symmetric)
    blocks = WEIGHT.view(48, 3, 32)
    scales, zeros = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args)
    expected = dequantize(quantize(WEIGHT, scales, zeros, args, dtype=torch.int8), scales, zeros, args=args)
    found = nearest(WEIGHT, Grid(4, symmetric, 32, torch.float32))
    torch.testing.assert_close(found.scales, scales)
    torch.testing.assert_close(found.weight(), expected, rtol=1e-6, atol=1e-7)
    assert (found.zeros is None) == symmetric


def test_8_bit_floats() -> None:
    found = nearest(WEIGHT, grid_of(METHODS["fp8"], None, torch.bfloat16))
    scales = WEIGHT.abs().amax(1, keepdim=True) / 448
    torch.testing.assert_close(found.scales, scales)
    torch.testing.assert_close(found.weight(), (WEIGHT / scales).to(torch.float8_e4m3fn).float() * scales)


def test_8_bit_integers() -> None:
    found = nearest(WEIGHT, grid_of(METHODS["int8"], None, torch.bfloat16))
    assert found.scales.shape == (48, 1)
    assert int(found.numbers.abs().max()) == 127
    assert float((found.weight() - WEIGHT).abs().max()) <= float(found.scales.max()) / 2 + 1e-7


def test_scales_are_what_the_file_can_hold() -> None:
    """Rounding to a scale that the file does not hold would add the error of the scale to all weights of the group."""
    found = nearest(WEIGHT, Grid(4, True, 32, torch.bfloat16))
    assert torch.equal(found.scales, found.scales.bfloat16().float())
    error = (found.weight() - WEIGHT).view(48, 3, 32).abs().amax(-1)
    assert bool((error <= found.scales * 0.56).all())  # the largest may lie half a step and the rounding of the scale outside


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("weight", [torch.zeros(2, 32), torch.full((2, 32), 1e-30), torch.full((2, 32), -7e5)])
def test_extreme_groups(weight: torch.Tensor, dtype: torch.dtype) -> None:
    for symmetric in (True, False):
        found = nearest(weight, Grid(4, symmetric, 32, dtype))
        assert bool(torch.isfinite(found.weight()).all())
        assert bool((found.scales > 0).all())
        assert bool((found.weight().abs() <= weight.abs().clamp_min(1e-3) * 1.1).all())


def test_zero_stays_zero() -> None:
    """Also where all weights of a group are positive: padding and dead inputs must not begin to count."""
    weight = WEIGHT.abs() + 0.1
    weight[:, 5] = 0.0
    assert float(nearest(weight, Grid(4, False, 32, torch.float32)).weight()[:, 5].abs().max()) == 0.0


def test_groups_far_from_zero() -> None:
    """The range reaches to 0, where the zero point is."""
    for weight in (WEIGHT + 5.0, WEIGHT - 5.0):
        found = nearest(weight, Grid(4, False, 32, torch.float32))
        assert float((found.weight() - weight).abs().max()) <= float(found.scales.max()) / 2 + 1e-6
