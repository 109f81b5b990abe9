"""Norms against the reference."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.interface import Kernels
from headway.kernels.reference import REFERENCE
from tests.kernels.triton.tolerances import DTYPES, close, randn

SHAPES = [(1, 48), (3, 64), (2, 2, 100), (5, 1), (0, 32)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rms_norm(kernels: Kernels, device: torch.device, dtype: torch.dtype, wide: bool, shape: tuple[int, ...]) -> None:
    x, weight = randn(*shape, dtype=dtype) * 3, randn(shape[-1], dtype=torch.float32 if wide else dtype, seed=1)
    close(kernels.rms_norm(x.to(device), weight.to(device), 1e-5), REFERENCE.rms_norm(x, weight, 1e-5))


@pytest.mark.parametrize("wide", [False, True])
def test_rms_norm_rounds_where_the_reference_rounds(kernels: Kernels, device: torch.device, wide: bool) -> None:
    """In float16: the interpreter cuts off what bfloat16 would round."""
    x, weight = randn(4, 256, dtype=torch.float16), randn(256, dtype=torch.float32 if wide else torch.float16, seed=1)
    found = kernels.rms_norm(x.to(device), weight.to(device), 1e-5)
    assert (found.cpu() == REFERENCE.rms_norm(x, weight, 1e-5)).float().mean() > 0.97


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [False, True])
def test_rms_norm_added_to_the_residual_stream(kernels: Kernels, device: torch.device, dtype: torch.dtype, wide: bool) -> None:
    residual, x = randn(4, 80, dtype=dtype), randn(4, 90, dtype=dtype, seed=1)[:, 5:85] * 3
    weight = randn(80, dtype=torch.float32 if wide else dtype, seed=2)
    found = kernels.add_rms_norm(residual.to(device), x.to(device), weight.to(device), 1e-5, 0.25)
    close(found, REFERENCE.add_rms_norm(residual, x, weight, 1e-5, 0.25))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_layer_norm(kernels: Kernels, device: torch.device, dtype: torch.dtype, biased: bool, shape: tuple[int, ...]) -> None:
    x, weight = randn(*shape, dtype=dtype) * 3 + 2, randn(shape[-1], dtype=dtype, seed=1)
    bias = randn(shape[-1], dtype=dtype, seed=2) if biased else None
    found = kernels.layer_norm(x.to(device), weight.to(device), None if bias is None else bias.to(device), 1e-2)
    close(found, REFERENCE.layer_norm(x, weight, bias, 1e-2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["norm_heads", "layer_norm_heads"])
@pytest.mark.parametrize("size", [16, 80])
def test_norms_of_heads_change_only_their_heads(kernels: Kernels, device: torch.device, dtype: torch.dtype, name: str, size: int) -> None:
    rows, weight = randn(3, 6, size, dtype=dtype) + 1, randn(5, size, dtype=dtype, seed=1)
    found, wanted = rows.to(device, copy=True), rows.clone()
    getattr(kernels, name)(found[:, :5], weight.to(device), 1e-6)
    getattr(REFERENCE, name)(wanted[:, :5], weight, 1e-6)
    close(found, wanted)
    assert torch.equal(found[:, 5].cpu(), rows[:, 5])


def test_what_is_not_finite_stays_so(kernels: Kernels, device: torch.device) -> None:
    x = torch.ones(3, 16)
    x[1, 3], x[2, 3] = float("nan"), float("inf")
    found = kernels.rms_norm(x.to(device), torch.ones(16, device=device), 1e-5)
    assert found.isfinite().all(-1).tolist() == [True, False, False]
