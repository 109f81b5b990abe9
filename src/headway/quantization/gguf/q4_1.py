"""Q4_1: 32 weights in 20 bytes: float16 d and m, 16 bytes of nibbles. w = d q + m."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles

FORM: Final = IntegerForm(4, 32, minimums=True)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 20] -> [n, 32]."""
    return IntegerWeight(FORM, nibbles(blocks[:, 4:]), half_field(blocks, 0), half_field(blocks, 2))
