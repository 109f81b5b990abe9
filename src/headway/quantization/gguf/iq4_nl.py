"""IQ4_NL: 32 weights in 18 bytes: float16 d, 16 bytes of nibbles; w = d value[q]."""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.iq4_values import iq4_values


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 18] -> float32 [n, 32]."""
    return half_field(blocks, 0) * iq4_values(nibbles(blocks[:, 2:]))
