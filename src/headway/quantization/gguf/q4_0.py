"""Q4_0: 32 weights in 18 bytes: float16 d, 16 bytes of nibbles. w = d (q - 8)."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles

FORM: Final = IntegerForm(4, 32, offset=8)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 18] -> [n, 32]."""
    return IntegerWeight(FORM, nibbles(blocks[:, 2:]), half_field(blocks, 0))
