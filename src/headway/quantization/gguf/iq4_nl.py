"""IQ4_NL: 32 weights in 18 bytes: float16 d, 16 bytes of nibbles; w = d value[q]."""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.iq4_values import iq4_values

FORM: Final = IntegerForm(8, 32)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 18] -> [n, 32]."""
    return IntegerWeight(FORM, iq4_values(nibbles(blocks[:, 2:])), half_field(blocks, 0))
