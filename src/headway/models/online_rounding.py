"""Which weights of a model `--quantization fp8|int8|int4` rounds, when the checkpoint is not quantized itself."""

from __future__ import annotations

import torch

from headway.models.fill import Stack
from headway.quantization.online import round_weight


def round_stack(stack: Stack, tensor: torch.Tensor, method: str) -> None:
    """Matrices of layers, each by itself where several are fused; not embeddings, the head, norms or biases."""
    if stack.kind == "weight" and stack.module.startswith("layers.") and stack.parts[0].rule.shard != "whole" and tensor.dim() == 2:
        for weight in torch.split(tensor, stack.rows):
            round_weight(weight, method)
