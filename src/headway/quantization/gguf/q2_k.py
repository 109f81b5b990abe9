"""Q2_K: 256 weights in 84 bytes: 16 bytes of scales, 64 bytes of pairs of bits, float16 d and dmin.

Sixteen sub-blocks of 16; the low half of a byte of scales is the scale, the high half the minimum. w = (d scale) q - (dmin minimum).
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field
from headway.quantization.gguf.low_bits import low_two_bits

FORM: Final = IntegerForm(4, 16, minimums=True)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 84] -> [n, 256]."""
    packed = blocks[:, :16]
    scales = (packed & 15).float() * half_field(blocks, 80)
    minima = (packed >> 4).float() * -half_field(blocks, 82)
    return IntegerWeight(FORM, low_two_bits(blocks[:, 16:80]).view(-1, 256), scales, minima)
