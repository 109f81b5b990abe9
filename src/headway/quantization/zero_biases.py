"""Biases of zeros beside packed weights: tools for GPTQ write one for every matrix, also where the model has none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from headway.artifacts.card import ModelCard
from headway.quantization.logical_card import packed_weights

_MOST_BYTES: Final = 1 << 22


def without_zero_biases(card: ModelCard, wanted: Collection[str]) -> ModelCard:
    """A logical card without the biases of packed weights that are not `wanted` and hold only zeros."""
    names = [weight.name.removesuffix("weight") + "bias" for weight in packed_weights(card)]
    left_over = [name for name in names if name in card.tensors and name not in wanted]
    zeros = {name for name in left_over if _is_zero(card, name)}
    return replace(card, tensors={name: each for name, each in card.tensors.items() if name not in zeros}) if zeros else card


def _is_zero(card: ModelCard, name: str) -> bool:
    info = card.tensors[name]
    if info.nbytes > _MOST_BYTES:
        return False
    with info.file.open("rb") as file:
        file.seek(info.offset)
        return not any(file.read(info.nbytes))
