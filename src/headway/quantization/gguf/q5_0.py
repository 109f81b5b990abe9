"""Q5_0: 32 weights in 22 bytes: float16 d, 32 fifth bits, 16 bytes of nibbles. w = d (q - 16)."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import bits, half_field, nibbles

FORM: Final = IntegerForm(8, 32)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 22] -> [n, 32]."""
    q = nibbles(blocks[:, 6:]) | (bits(blocks[:, 2:6]) << 4)
    return IntegerWeight(FORM, q.view(torch.int8) - 16, half_field(blocks, 0))
