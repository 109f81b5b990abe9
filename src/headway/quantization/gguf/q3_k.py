"""Q3_K: 256 weights in 110 bytes: 32 bytes of third bits, 64 bytes of low bits, 12 bytes of scales, float16 d.

w = (d scale) q with one scale for 16 weights; q is the two low bits, less 4 where the third bit is 0. Bit 4h + j of byte l of the third
bits belongs to weight l of row j of half h. Scales have 6 bits and an offset of 32: the low four in the halves of bytes 0-7 (first the
low halves), the top two in pairs of bits of bytes 8-11.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.low_bits import low_two_bits

FORM: Final = IntegerForm(4, 16, offset=8)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 110] -> [n, 256]."""
    third = (blocks[:, None, :32] >> torch.arange(8, dtype=torch.uint8)[:, None]) & 1
    q = low_two_bits(blocks[:, 32:96]).view(-1, 8, 32) + (third << 2) + 4  # less 4, plus the offset
    top = (blocks[:, None, 104:108] >> torch.arange(0, 8, 2, dtype=torch.uint8)[:, None]) & 3
    scales = (nibbles(blocks[:, 96:104]) | (top.flatten(1) << 4)).float() - 32.0
    return IntegerWeight(FORM, q.view(-1, 256), scales.mul_(half_field(blocks, 108)))
