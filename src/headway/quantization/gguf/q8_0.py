"""Q8_0: 32 weights in 34 bytes: float16 d, 32 signed bytes. w = d q."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 34] -> float32 [n, 32]."""
    return half_field(blocks, 0) * blocks[:, 2:].view(torch.int8).float()
