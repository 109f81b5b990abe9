"""Q8_0: 32 weights in 34 bytes: float16 d, 32 signed bytes. w = d q."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field

FORM: Final = IntegerForm(8, 32)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 34] -> [n, 32]."""
    return IntegerWeight(FORM, blocks[:, 2:].clone(memory_format=torch.contiguous_format).view(torch.int8), half_field(blocks, 0))
