"""Q5_1: 32 weights in 24 bytes: float16 d and m, 32 fifth bits, 16 bytes of nibbles. w = d q + m."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import bits, half_field, nibbles


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 24] -> float32 [n, 32]."""
    q = nibbles(blocks[:, 8:]) | (bits(blocks[:, 4:8]) << 4)
    return torch.addcmul(half_field(blocks, 2), q.float(), half_field(blocks, 0))
