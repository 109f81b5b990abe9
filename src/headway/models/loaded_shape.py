"""What the kernels of this machine keep as integers of a card: for plans of memory and speed before anything is loaded."""

from __future__ import annotations

from dataclasses import replace

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.model_shape import ModelShape
from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare
from headway.errors import HeadwayError
from headway.kernels.choice import engine_kernels
from headway.models.native import plan_native


def loaded_integers(card: ModelCard, dtype_bytes: int) -> IntegerShare:
    """Nothing of a card that no native model reads: its weights are unpacked, or refused."""
    kernels = engine_kernels(torch.bfloat16 if dtype_bytes == 2 else torch.float32)
    try:
        return plan_native(card, card.context_length or 1).integers(kernels)
    except HeadwayError:
        return NO_INTEGERS


def loaded_shape(shape: ModelShape, card: ModelCard, dtype_bytes: int) -> ModelShape:
    """`shape` is that of the card."""
    return replace(shape, integers=loaded_integers(card, dtype_bytes))
