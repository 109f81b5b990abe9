"""GGUF block type -> the function that unpacks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch

from headway.quantization.gguf import iq4_nl, iq4_xs, mxfp4, q2_k, q3_k, q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0

Unpack = Callable[[torch.Tensor], torch.Tensor]

# uint8 [blocks, bytes of a block] -> float32 [blocks, weights of a block]
UNPACKERS: Final[Mapping[str, Unpack]] = {
    "Q4_0": q4_0.dequantize,
    "Q4_1": q4_1.dequantize,
    "Q5_0": q5_0.dequantize,
    "Q5_1": q5_1.dequantize,
    "Q8_0": q8_0.dequantize,
    "Q2_K": q2_k.dequantize,
    "Q3_K": q3_k.dequantize,
    "Q4_K": q4_k.dequantize,
    "Q5_K": q5_k.dequantize,
    "Q6_K": q6_k.dequantize,
    "IQ4_NL": iq4_nl.dequantize,
    "IQ4_XS": iq4_xs.dequantize,
    "MXFP4": mxfp4.dequantize,
}
