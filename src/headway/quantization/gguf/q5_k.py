"""Q5_K: 256 weights in 176 bytes: Q4_K with 32 bytes of fifth bits before the nibbles.

Bit j of byte l of those is the fifth bit of weight l of sub-block j.
"""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.k_scales import scales_and_minima


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 176] -> float32 [n, 256]."""
    scales, minima = scales_and_minima(blocks[:, 4:16])
    scales *= half_field(blocks, 0)
    minima *= half_field(blocks, 2)
    shifts = torch.arange(8, dtype=torch.uint8)[:, None]
    fifth = (blocks[:, None, 16:48] >> shifts) & 1
    q = nibbles(blocks[:, 48:].reshape(-1, 4, 32)).view(-1, 8, 32) | (fifth << 4)
    return (scales[..., None] * q.float() - minima[..., None]).view(-1, 256)
