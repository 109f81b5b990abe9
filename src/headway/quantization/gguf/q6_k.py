"""Q6_K: 256 weights in 210 bytes: 128 bytes of low nibbles, 64 bytes of top bits, 16 signed scales, float16 d.

w = (d scale) (q - 32) with one scale for 16 weights. Each half (64 low bytes, 32 top bytes) gives 128 weights, as four
rows of 32: rows 0 and 1 are the low nibbles of the 64 bytes, rows 2 and 3 the high ones; row r takes its two top bits
from bits 2r and 2r+1 of the top bytes.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles

FORM: Final = IntegerForm(8, 16)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 210] -> [n, 256]."""
    low = nibbles(blocks[:, :128].reshape(-1, 2, 64)).view(-1, 2, 4, 32)
    shifts = torch.arange(0, 8, 2, dtype=torch.uint8)[:, None]
    top = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    q = (low | (top << 4)).view(-1, 256).view(torch.int8) - 32
    return IntegerWeight(FORM, q, half_field(blocks, 208) * blocks[:, 192:208].view(torch.int8).float())
