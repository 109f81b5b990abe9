"""Q4_1: 32 weights in 20 bytes: float16 d and m, 16 bytes of nibbles. w = d q + m."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field, nibbles


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 20] -> float32 [n, 32]."""
    return torch.addcmul(half_field(blocks, 2), nibbles(blocks[:, 4:]).float(), half_field(blocks, 0))
