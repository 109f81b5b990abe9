"""Gated activations against the reference."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.interface import Kernels
from headway.kernels.reference import REFERENCE
from tests.kernels.triton.tolerances import DTYPES, close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["silu_gate", "gelu_gate", "gelu_tanh_gate"])
@pytest.mark.parametrize("shape", [(1, 96), (3, 50), (2, 2500), (0, 8)], ids=str)
def test_gates(kernels: Kernels, device: torch.device, dtype: torch.dtype, name: str, shape: tuple[int, int]) -> None:
    x = randn(*shape, dtype=dtype) * 2
    close(getattr(kernels, name)(x.to(device)), getattr(REFERENCE, name)(x))


def test_large_gates_do_not_overflow(kernels: Kernels, device: torch.device) -> None:
    x = torch.tensor([[-1000.0, -100.0, 100.0, 1000.0, 1.0, 1.0, 1.0, 1.0]])
    for name in ("silu_gate", "gelu_gate", "gelu_tanh_gate"):
        close(getattr(kernels, name)(x.to(device)), torch.tensor([[0.0, 0.0, 100.0, 1000.0]]))
