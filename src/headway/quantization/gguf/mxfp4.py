"""MXFP4: 32 weights in 17 bytes: an exponent e, 16 bytes of 4-bit floats (e2m1); w = 2^(e - 127) value[q]."""

from __future__ import annotations

import torch

from headway.quantization.e2m1 import e2m1
from headway.quantization.gguf.block_fields import nibbles


def dequantize(blocks: torch.Tensor) -> torch.Tensor:
    """uint8 [n, 17] -> float32 [n, 32]."""
    return torch.exp2(blocks[:, :1].float() - 127.0) * e2m1(nibbles(blocks[:, 1:]))
