"""Norms, rotation, gates and linear layers of the torch backend against the reference."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.interface import Activation
from headway.kernels.reference import REFERENCE
from headway.kernels.torch_backend import TORCH
from headway.kernels.torch_linear import OneDnnLinear, can_pack

TOLERANCE = {torch.float32: {"atol": 2e-6, "rtol": 2e-5}, torch.bfloat16: {"atol": 0.02, "rtol": 0.02}}
DTYPES = list(TOLERANCE)


def randn(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [False, True])
def test_rms_norm(dtype: torch.dtype, wide: bool) -> None:
    x, weight = randn(5, 48, dtype=dtype) * 3, randn(48, dtype=torch.float32 if wide else dtype, seed=1)
    ours = TORCH.rms_norm(x, weight, 1e-5)
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, REFERENCE.rms_norm(x, weight, 1e-5), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [False, True])
def test_norm_heads_changes_only_its_heads(dtype: torch.dtype, wide: bool) -> None:
    rows, weight = randn(4, 6, 16, dtype=dtype), randn(5, 16, dtype=torch.float32 if wide else dtype, seed=1)
    ours, reference = rows.clone(), rows.clone()
    TORCH.norm_heads(ours[:, :5], weight, 1e-6)
    REFERENCE.norm_heads(reference[:, :5], weight, 1e-6)
    torch.testing.assert_close(ours, reference, **TOLERANCE[dtype])
    assert torch.equal(ours[:, 5], rows[:, 5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("biased", [False, True])
def test_layer_norm(dtype: torch.dtype, biased: bool) -> None:
    x, weight = randn(5, 48, dtype=dtype) * 3 + 2, randn(48, dtype=dtype, seed=1)
    bias = randn(48, dtype=dtype, seed=2) if biased else None
    ours = TORCH.layer_norm(x, weight, bias, 1e-2)
    assert ours.dtype == dtype
    reference = REFERENCE.layer_norm(x, weight, bias, 1e-2)
    torch.testing.assert_close(ours, reference, **TOLERANCE[dtype])
    torch.testing.assert_close(reference, torch.layer_norm(x, (48,), weight, bias, 1e-2), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_of_heads_changes_only_its_heads(dtype: torch.dtype) -> None:
    rows, weight = randn(4, 6, 16, dtype=dtype) + 1, randn(5, 16, dtype=dtype, seed=1)
    ours, reference = rows.clone(), rows.clone()
    TORCH.layer_norm_heads(ours[:, :5], weight, 1e-2)
    REFERENCE.layer_norm_heads(reference[:, :5], weight, 1e-2)
    torch.testing.assert_close(ours, reference, **TOLERANCE[dtype])
    head = torch.layer_norm(rows[:, 3], (16,), weight[3], None, 1e-2)
    torch.testing.assert_close(reference[:, 3], head, **TOLERANCE[dtype])
    assert torch.equal(ours[:, 5], rows[:, 5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_in_place(dtype: torch.dtype) -> None:
    rows = randn(3, 6, 16, dtype=dtype)
    angles = torch.rand(3, 1, 8) * 6
    cos = torch.cat((angles.cos(), angles.cos()), -1).to(dtype)
    sin = torch.cat((-angles.sin(), angles.sin()), -1).to(dtype)
    ours, reference = rows.clone(), rows.clone()
    TORCH.rotate(ours[:, :4], cos, sin)
    REFERENCE.rotate(reference[:, :4], cos, sin)
    torch.testing.assert_close(ours, reference, **TOLERANCE[dtype])
    assert torch.equal(ours[:, 4:], rows[:, 4:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["silu_gate", "gelu_tanh_gate", "gelu_gate"])
def test_gates(dtype: torch.dtype, name: str) -> None:
    x = randn(7, 64, dtype=dtype) * 2
    torch.testing.assert_close(getattr(TORCH, name)(x), getattr(REFERENCE, name)(x), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "relu"])
def test_activations(dtype: torch.dtype, name: Activation) -> None:
    x = randn(7, 64, dtype=dtype) * 2
    kept = x.clone()
    ours, reference = TORCH.activations[name](x), REFERENCE.activations[name](x)
    assert ours.dtype == reference.dtype == dtype
    torch.testing.assert_close(ours, reference, **TOLERANCE[dtype])
    assert torch.equal(x, kept)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("biased", [False, True])
def test_linear(dtype: torch.dtype, rows: int, biased: bool) -> None:
    weight, x = randn(37, 50, dtype=dtype) / 7, randn(rows, 50, dtype=dtype, seed=1)
    bias, residual = randn(37, dtype=dtype, seed=2) if biased else None, randn(rows, 37, dtype=dtype, seed=3)
    ours, reference = TORCH.pack_linear(weight, bias), REFERENCE.pack_linear(weight, bias)
    torch.testing.assert_close(ours(x), reference(x), **TOLERANCE[dtype])
    torch.testing.assert_close(ours.add_to(residual, x), reference.add_to(residual, x), **TOLERANCE[dtype])
    for name in REFERENCE.activations:
        torch.testing.assert_close(ours.activated(x, name), reference.activated(x, name), **TOLERANCE[dtype])


def test_float16_keeps_the_plain_weight() -> None:
    assert not can_pack(torch.float16)
    assert not isinstance(TORCH.pack_linear(torch.ones(4, 4, dtype=torch.float16), None), OneDnnLinear)
