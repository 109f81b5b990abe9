"""Q2_K: 256 weights in 84 bytes: 16 bytes of scales, 64 bytes of pairs of bits, float16 d and dmin.

Sixteen sub-blocks of 16; the low half of a byte of scales is the scale, the high half the minimum. w = (d scale) q - (dmin minimum).
"""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field
from headway.quantization.gguf.low_bits import low_two_bits


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 84] -> float32 [n, 256]."""
    packed = blocks[:, :16]
    scales = (packed & 15).float() * half_field(blocks, 80)
    minima = (packed >> 4).float() * half_field(blocks, 82)
    q = low_two_bits(blocks[:, 16:80]).reshape(-1, 16, 16)
    return (scales[..., None] * q.float() - minima[..., None]).view(-1, 256)
