"""Q5_K: 256 weights in 176 bytes: Q4_K with 32 bytes of fifth bits before the nibbles.

Bit j of byte l of those is the fifth bit of weight l of sub-block j.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.k_scales import scales_and_minima

FORM: Final = IntegerForm(8, 32, minimums=True)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 176] -> [n, 256]."""
    scales, minima = scales_and_minima(blocks[:, 4:16])
    shifts = torch.arange(8, dtype=torch.uint8)[:, None]
    fifth = (blocks[:, None, 16:48] >> shifts) & 1
    q = nibbles(blocks[:, 48:].reshape(-1, 4, 32)).view(-1, 8, 32) | (fifth << 4)
    codes = q.view(-1, 256).view(torch.int8)
    return IntegerWeight(FORM, codes, scales.mul_(half_field(blocks, 0)), minima.mul_(-half_field(blocks, 2)))
