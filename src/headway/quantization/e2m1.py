"""The 4-bit float of nvfp4 and mxfp4: sign in the highest bit, two bits of exponent, one of mantissa (OCP Microscaling, E2M1)."""

from __future__ import annotations

from typing import Final

import torch

_POSITIVE: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def e2m1(codes: torch.Tensor) -> torch.Tensor:
    """uint8 codes 0..15 -> float32."""
    return torch.tensor((*_POSITIVE, *(-value for value in _POSITIVE))).index_select(0, codes.flatten().int()).view(codes.shape)
