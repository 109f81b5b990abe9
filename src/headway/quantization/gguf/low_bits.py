"""The two low bits of each weight of Q2_K and Q3_K."""

from __future__ import annotations

import torch


def low_two_bits(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 64] -> uint8 [n, 2, 4, 32], in order: each half of 128 weights takes 32 bytes, and each pair of their bits gives 32."""
    shifts = torch.arange(0, 8, 2, dtype=torch.uint8)[:, None]
    return (packed.reshape(-1, 2, 1, 32) >> shifts) & 3
