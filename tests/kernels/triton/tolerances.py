"""How far results may be from the reference, which rounds at the same places but sums in another order."""

from __future__ import annotations

from typing import Final

import torch

# Beside numbers of order 1: some roundings of float32 sums; for 16 bits one step of their mantissa, which such a difference may tip over.
TOLERANCE: Final = {
    torch.float32: {"atol": 5e-6, "rtol": 2e-5}, torch.bfloat16: {"atol": 0.016, "rtol": 0.016}, torch.float16: {"atol": 0.002, "rtol": 0.002},
}  # fmt: skip
DTYPES: Final = list(TOLERANCE)


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Of one dtype; `found` may be on a device."""
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found.cpu(), wanted, **TOLERANCE[wanted.dtype])
