"""Q4_0: 32 weights in 18 bytes: float16 d, 16 bytes of nibbles. w = d (q - 8)."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field, nibbles


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 18] -> float32 [n, 32]."""
    return half_field(blocks, 0) * (nibbles(blocks[:, 2:]).float() - 8.0)
