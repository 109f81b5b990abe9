"""Rounding to a format while loading: against the compressed-tensors library, and for int8 against the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from compressed_tensors.quantization import QuantizationArgs, dequantize, quantize
from compressed_tensors.quantization.utils import calculate_qparams

from headway.quantization.online import METHODS, online_form, online_integers, round_weight

WEIGHT = torch.randn(24, 256, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    ("method", "settings"),
    [("fp8", {"num_bits": 8, "type": "float", "strategy": "tensor"}), ("int4", {"num_bits": 4, "strategy": "group", "group_size": 128})],
)
def test_equals_the_library(method: str, settings: dict[str, Any]) -> None:
    args = QuantizationArgs(symmetric=True, **settings)
    groups = WEIGHT.view(1, 1, -1) if method == "fp8" else WEIGHT.view(24, -1, 128)
    scale, zero = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
    if method == "fp8":
        scale, zero = scale.reshape(1), zero.reshape(1)
    expected = dequantize(quantize(WEIGHT, scale, zero, args), scale, zero, args)
    rounded = WEIGHT.clone()
    round_weight(rounded, method)
    torch.testing.assert_close(rounded, expected, rtol=1e-6, atol=1e-7)
    assert not torch.equal(rounded, WEIGHT)


@pytest.mark.parametrize(("method", "group"), [("int8", 256), ("int8_32", 32)])
def test_int8_is_a_grid_of_127_steps_up_to_the_largest_of_each_group(method: str, group: int) -> None:
    rounded = WEIGHT.clone()
    round_weight(rounded, method)
    rows, rounded = WEIGHT.double().view(-1, group).numpy(), rounded.view(-1, group)
    step = np.abs(rows).max(1, keepdims=True) / 127
    np.testing.assert_allclose(rounded.numpy(), np.rint(rows / step) * step, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros_stay_and_widths_need_not_divide(method: str, dtype: torch.dtype) -> None:
    weight = torch.randn(3, 200, generator=torch.Generator().manual_seed(3)).to(dtype)
    weight[1] = 0.0
    rounded = weight.clone()
    round_weight(rounded, method)
    assert rounded.dtype == dtype
    assert torch.equal(rounded[1], weight[1])
    assert float((rounded - weight).abs().max()) < 0.1 * float(weight.abs().max())


@pytest.mark.parametrize("method", ["int8", "int8_32", "int4"])
@pytest.mark.parametrize("width", [128, 192, 200])
def test_integers_are_what_is_rounded_to(method: str, width: int) -> None:
    weight = torch.randn(7, width, generator=torch.Generator().manual_seed(4)).bfloat16()
    integers = online_integers(weight, method)
    assert integers.form == online_form(method, width)
    rounded = weight.float()
    round_weight(rounded, method)
    assert torch.equal(integers.dequantized(), rounded)
    assert len(integers.codes.unique()) <= (16 if method == "int4" else 256)
