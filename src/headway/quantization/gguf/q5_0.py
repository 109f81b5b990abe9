"""Q5_0: 32 weights in 22 bytes: float16 d, 32 fifth bits, 16 bytes of nibbles. w = d (q - 16)."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import bits, half_field, nibbles


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 22] -> float32 [n, 32]."""
    q = nibbles(blocks[:, 6:]) | (bits(blocks[:, 2:6]) << 4)
    return half_field(blocks, 0) * (q.float() - 16.0)
