"""Which way round packed matrices lie where the checkpoint of the model has them transposed (the Conv1D of GPT-2, [in, out]).

Tools for GPTQ and bitsandbytes turn such a matrix to [out, in] before they pack it, others pack it as it is. Matrices that are not square
show by their shape what was done, and all of a checkpoint are alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError
from headway.models.weight_rules import PlacedWeight
from headway.quantization.packed_weight import PackedTensor


def as_packed(card: ModelCard, weights: Iterable[PlacedWeight]) -> tuple[PlacedWeight, ...]:
    """`weights` in which packed matrices that were turned before they were packed are not turned again.

    Raises ArtifactError (`packed_shape`) when the matrices of a checkpoint lie differently, or all of them are square.
    """
    placed = tuple(weights)
    packed = [each for each in placed if each.rule.transform == "transposed" and isinstance(card.tensors.get(each.source), PackedTensor)]
    telling = [each for each in packed if each.shape[0] != each.shape[1]]
    turned = [each for each in telling if card.tensors[each.source].shape == each.shape[::-1]]
    if packed and (not telling or len(turned) not in (0, len(telling))):
        raise ArtifactError(
            f"{card.path}: the packed matrices of {card.architecture} do not all lie the same way round"
            f" ({len(turned)} of the {len(telling)} that are not square are turned)",
            reason="packed_shape", param=packed[0].source, fix="Use the unquantized checkpoint of the model, or a GGUF file.",
        )  # fmt: skip
    if not turned:
        return placed
    names = {each.source for each in packed}
    return tuple(_turned(each) if each.source in names else each for each in placed)


def _turned(weight: PlacedWeight) -> PlacedWeight:
    return replace(weight, rule=replace(weight.rule, transform=None), shape=weight.shape[::-1])
