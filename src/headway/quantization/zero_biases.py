"""Biases of zeros beside packed weights: tools for GPTQ write one for every matrix, also where the model has none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from headway.artifacts.card import ModelCard
from headway.quantization.packed_weight import PackedTensor

_MOST_BYTES: Final = 1 << 22


def without_zero_biases(card: ModelCard, taken: Collection[str]) -> ModelCard:
    """A logical card without biases of zeros that are not among the `taken` tensors and belong to a packed weight that is."""
    packed = (name for name, each in card.tensors.items() if isinstance(each, PackedTensor) and name in taken)
    names = [name.removesuffix("weight") + "bias" for name in packed]
    left_over = [name for name in names if name in card.tensors and name not in taken]
    zeros = {name for name in left_over if _is_zero(card, name)}
    return replace(card, tensors={name: each for name, each in card.tensors.items() if name not in zeros}) if zeros else card


def _is_zero(card: ModelCard, name: str) -> bool:
    info = card.tensors[name]
    if info.nbytes > _MOST_BYTES:
        return False
    with info.file.open("rb") as file:
        file.seek(info.offset)
        return not any(file.read(info.nbytes))
