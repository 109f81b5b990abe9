"""Which weights of a model fp8, int8 and int4 quantize, when the checkpoint is not quantized itself (`--quantization`), and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

from headway.models.fill import Stack
from headway.quantization.online import round_weight

# The head is read as often as a layer, and is larger than several; what it rounds goes straight into the logits.
_HEADS: Final[Mapping[str, str | None]] = {"fp8": None, "int8": "int8", "int8_32": "int8_32", "int4": "int8"}


def rounding_of(stack: Stack, method: str | None) -> str | None:
    """What `method` makes of a stack: matrices of layers, and the head in 8 bits; not embeddings, norms, biases, or what chooses experts."""
    if method is None or stack.kind != "weight" or len(stack.shape) != 2:
        return None
    if stack.module == "head":
        return _HEADS[method]
    return method if stack.module.startswith("layers.") and not stack.module.endswith(".router") else None


def round_stack(stack: Stack, tensor: torch.Tensor, method: str | None) -> None:
    """Each matrix by itself where several are fused."""
    rounding = rounding_of(stack, method)
    if rounding is not None:
        for weight in torch.split(tensor, stack.rows):
            round_weight(weight, rounding)
