"""Q5_1: 32 weights in 24 bytes: float16 d and m, 32 fifth bits, 16 bytes of nibbles. w = d q + m."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import bits, half_field, nibbles

FORM: Final = IntegerForm(8, 32, minimums=True)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 24] -> [n, 32]."""
    q = nibbles(blocks[:, 8:]) | (bits(blocks[:, 4:8]) << 4)
    return IntegerWeight(FORM, q.view(torch.int8), half_field(blocks, 0), half_field(blocks, 2))
