"""GGUF block type -> how it is read: as integers where it has them, and as floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch

from headway.kernels.integer_weight import IntegerForm, IntegerWeight
from headway.quantization.gguf import iq4_nl, iq4_xs, mxfp4, q2_k, q3_k, q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0

Unpack = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class IntegerBlocks:
    """`integers`: uint8 [blocks, bytes of a block] -> integers [blocks, weights of a block]."""

    form: IntegerForm
    integers: Callable[[torch.Tensor], IntegerWeight]

    def dequantize(self, blocks: torch.Tensor) -> torch.Tensor:
        return self.integers(blocks).dequantized()


# Types of 5 and 6 bits, and of tables of integers, have codes of 8 bits.
INTEGER_BLOCKS: Final[Mapping[str, IntegerBlocks]] = {
    "Q4_0": IntegerBlocks(q4_0.FORM, q4_0.integers),
    "Q4_1": IntegerBlocks(q4_1.FORM, q4_1.integers),
    "Q5_0": IntegerBlocks(q5_0.FORM, q5_0.integers),
    "Q5_1": IntegerBlocks(q5_1.FORM, q5_1.integers),
    "Q8_0": IntegerBlocks(q8_0.FORM, q8_0.integers),
    "Q2_K": IntegerBlocks(q2_k.FORM, q2_k.integers),
    "Q3_K": IntegerBlocks(q3_k.FORM, q3_k.integers),
    "Q4_K": IntegerBlocks(q4_k.FORM, q4_k.integers),
    "Q5_K": IntegerBlocks(q5_k.FORM, q5_k.integers),
    "Q6_K": IntegerBlocks(q6_k.FORM, q6_k.integers),
    "IQ4_NL": IntegerBlocks(iq4_nl.FORM, iq4_nl.integers),
    "IQ4_XS": IntegerBlocks(iq4_xs.FORM, iq4_xs.integers),
}

# uint8 [blocks, bytes of a block] -> float32 [blocks, weights of a block]
UNPACKERS: Final[Mapping[str, Unpack]] = {
    **{name: blocks.dequantize for name, blocks in INTEGER_BLOCKS.items()}, "MXFP4": mxfp4.dequantize,
}  # fmt: skip
