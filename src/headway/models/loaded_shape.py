"""ModelShape of a card, with what the kernels of this machine keep as integers: for plans of memory and speed before anything is loaded."""

from __future__ import annotations

from dataclasses import replace

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.model_shape import ModelShape
from headway.errors import HeadwayError
from headway.kernels.choice import default_kernels
from headway.models.native import plan_native


def loaded_shape(shape: ModelShape, card: ModelCard, dtype_bytes: int, rounding: str | None = None) -> ModelShape:
    """`shape` is that of the card; `rounding` the method of `--quantization` for a card that is not quantized. A card that no native
    model reads stays as it is: its weights are unpacked, or refused."""
    kernels = default_kernels(torch.bfloat16 if dtype_bytes == 2 else torch.float32)
    try:
        plan = replace(plan_native(card, card.context_length or 1), rounding=rounding)
    except HeadwayError:
        return shape
    return replace(shape, integers=plan.integers(kernels))
