"""Q4_K: 256 weights in 144 bytes: float16 d and dmin, 12 bytes of scales and minima, 128 bytes of nibbles.

Eight sub-blocks of 32; w = (d scale) q - (dmin minimum). Bytes 32p..32p+31 of the nibbles hold sub-block 2p in their
low and 2p+1 in their high halves.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf.block_fields import half_field, nibbles
from headway.quantization.gguf.k_scales import scales_and_minima

FORM: Final = IntegerForm(4, 32, minimums=True)


def integers(blocks: torch.Tensor) -> IntegerWeight:
    """uint8 [n, 144] -> [n, 256]."""
    scales, minima = scales_and_minima(blocks[:, 4:16])
    q = nibbles(blocks[:, 16:].reshape(-1, 4, 32)).view(-1, 256)
    return IntegerWeight(FORM, q, scales.mul_(half_field(blocks, 0)), minima.mul_(-half_field(blocks, 2)))
