"""IQ4_XS: 256 weights in 136 bytes: float16 d, 2 bytes of top bits of scales, 4 bytes of low bits of scales, 128 bytes of nibbles.

Eight sub-blocks of 32; w = d (scale - 32) value[q]. Scale i has its four low bits in half i of the 4 bytes (the low half of a byte first)
and its two top bits in bits 2i and 2i+1 of the 16-bit number.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.iq4_values import iq4_values

FORM: Final = IntegerForm(8, 32)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 136] -> [n, 256]."""
    pairs = torch.arange(0, 8, 2, dtype=torch.uint8)
    top = (blocks[:, 2:4, None] >> pairs) & 3
    low = torch.stack((blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4), -1)
    scales = half_field(blocks, 0) * ((low.flatten(1) | (top.flatten(1) << 4)).float() - 32.0)
    q = nibbles(blocks[:, 8:].reshape(-1, 8, 16)).view(-1, 256)
    return IntegerWeight(FORM, iq4_values(q), scales)
