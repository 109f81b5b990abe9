"""A decoder without its output head, from checkpoints of embedders and readouts: hidden states are all that is read of it.

Such checkpoints are saved from the bare model, so their names lack the `model.` of a language model, or have another
prefix; the architecture is called `...Model` or after its task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.artifacts.card import ModelCard, TensorInfo
from headway.errors import NotBuiltError
from headway.models.checkpoint_tensors import check_tensors
from headway.models.hf_weights import EMBEDDING, HEAD
from headway.models.native import NativePlan, placed_weights
from headway.quantization.logical_card import logical_card
from headway.quantization.supported import check_types
from headway.quantization.zero_biases import without_zero_biases

_CAUSAL_PREFIX: Final = "model."
_BARE: Final = EMBEDDING.source.removeprefix(_CAUSAL_PREFIX)
_TASK: Final = re.compile(r"(Model|ForSequenceClassification|ForTokenClassification)$")


def plan_backbone(card: ModelCard, context_length: int, prefix: str | None = None) -> NativePlan:
    """The decoder whose tensors begin with `prefix` ("", "model.", "backbone.", ...; None: what stands before the embedding).
    Tensors outside of it are the caller's; the output head, if there is one, is left out.

    Packed weights are unpacked while they are loaded. Raises ArtifactError as `plan_native` does, NotBuiltError for layers that see in both directions.
    """
    _refuse_both_directions(card)
    causal = _as_causal(logical_card(card), prefix)
    config, weights = placed_weights(causal, context_length)
    weights = tuple(weight for weight in weights if weight.module != "head")
    causal = without_zero_biases(causal, {weight.source for weight in weights})
    check_tensors(causal, {weight.source: weight.shape for weight in weights})
    check_types(causal.tensors[weight.source] for weight in weights)
    return NativePlan(causal, config, weights, head=False)


def _as_causal(card: ModelCard, prefix: str | None) -> ModelCard:
    """The card as that of a language model without a head."""
    tensors = _renamed(card.tensors, prefix) if card.format == "safetensors" else card.tensors
    tensors = {name: tensor for name, tensor in tensors.items() if name not in (HEAD, "output.weight")}
    return replace(
        card, architecture=_TASK.sub("ForCausalLM", card.architecture), tensors=tensors,
        parameters=sum(tensor.elements for tensor in tensors.values()),
    )  # fmt: skip


def _renamed(tensors: Mapping[str, TensorInfo], prefix: str | None) -> dict[str, TensorInfo]:
    if prefix is None:
        found = [name.removesuffix(_BARE) for name in tensors if name == _BARE or name.endswith(f".{_BARE}")]
        if len(found) != 1:  # an architecture with names of its own
            return dict(tensors)
        prefix = found[0]
    return {
        _CAUSAL_PREFIX + name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix) and name != HEAD
    }


def _refuse_both_directions(card: ModelCard) -> None:
    config: Mapping[str, Any] = card.config
    field = "is_causal" if config.get("is_causal") is False else "use_bidirectional_attention"
    if config.get("is_causal") is False or config.get("use_bidirectional_attention"):
        raise NotBuiltError(
            f"{card.reference} is a decoder whose tokens see in both directions ({field} in its configuration), which is not built",
            param=field, fix="Choose a causal embedding model, or an encoder.",
        )  # fmt: skip
