"""Q4_K: 256 weights in 144 bytes: float16 d and dmin, 12 bytes of scales and minima, 128 bytes of nibbles.

Eight sub-blocks of 32; w = (d scale) q - (dmin minimum). Bytes 32p..32p+31 of the nibbles hold sub-block 2p in their
low and 2p+1 in their high halves.
"""

from __future__ import annotations

import torch

from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.k_scales import scales_and_minima


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 144] -> float32 [n, 256]."""
    scales, minima = scales_and_minima(blocks[:, 4:16])
    scales *= half_field(blocks, 0)
    minima *= half_field(blocks, 2)
    q = nibbles(blocks[:, 16:].reshape(-1, 4, 32)).view(-1, 8, 32)
    return (scales[..., None] * q.float() - minima[..., None]).view(-1, 256)
