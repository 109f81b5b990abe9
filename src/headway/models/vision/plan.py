"""Models of a vision tower and a decoder: everything is checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard
from headway.errors import NotBuiltError
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes, refuse_unexpected
from headway.models.cpu_only import refuse_other_devices
from headway.models.fill import Progress
from headway.models.hf_fields import bad_field, count, flag
from headway.models.hf_weights import HEAD
from headway.models.native import NativePlan, plan_native
from headway.models.prepared.filling import fill_from_card
from headway.models.vision.tower import SiglipTower
from headway.models.vision.vision_config import VisionConfig, read_vision_config
from headway.models.vision.vision_weights import VISION_TABLE
from headway.models.weight_rules import PlacedWeight, place
from headway.quantization.supported import check_types

VISION_LANGUAGE: Final = ("Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration")
_DECODERS: Final = {"llama": "LlamaForCausalLM"}  # model_type of text_config -> the architecture whose table it has
_TEXT: Final = "model.text_model."


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionLanguagePlan(NativePlan):
    """A decoder, planned as if it stood alone, and its tower. `whole` is the card of the checkpoint."""

    whole: ModelCard
    vision: VisionConfig
    vision_weights: tuple[PlacedWeight, ...]
    image_token_id: int

    def __post_init__(self) -> None:
        if self.rounding is not None:
            raise NotBuiltError(
                f"--quantization {self.rounding} is not built for models that read images", param="quantization", fix="Leave the flag out."
            )

    @property
    def parameters(self) -> int:
        return self.whole.parameters

    @property
    def described(self) -> str:
        """What the model makes of an image, for people."""
        size, vision = sum(weight.stored(self.whole.tensors).elements for weight in self.vision_weights), self.vision
        return (
            f"read: a SigLIP tower of {vision.num_layers} layers and {size / 1e6:,.1f} M parameters makes {vision.rows} tokens of each"
            f" {vision.image_size} x {vision.image_size} pixels"
        )

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """The decoder, with its tower in `images`."""
        refuse_other_devices(kernels, "a model that reads images")
        tower = SiglipTower(self.vision, dtype, kernels)
        fill_from_card(tower, self.whole, self.vision_weights, kernels, lambda done, total: None, head=False)
        model = NativePlan.load(self, dtype, kernels, progress)
        model.tower = tower
        return model


def plan_vision_language(card: ModelCard, context_length: int) -> VisionLanguagePlan:
    """Raises ArtifactError and NotBuiltError as `plan_native` does, and NotBuiltError for quantized checkpoints and GGUF files."""
    _refuse_packed(card)
    text = plan_native(_decoder_card(card), context_length)
    vision = read_vision_config(card.config, text.config.hidden_size)
    weights = tuple(place(VISION_TABLE, vision))
    refuse_missing(card, [weight.source for weight in weights if weight.source not in card.tensors])
    refuse_shapes(
        card, [(w.source, card.tensors[w.source].shape, w.shape) for w in weights if card.tensors[w.source].shape != w.shape]
    )
    check_types(card.tensors[weight.source] for weight in weights)
    taken = {weight.source for weight in weights}
    refuse_unexpected(card, [name for name in card.tensors if name not in taken and not name.startswith(_TEXT) and name != HEAD])
    token = count(card.config, "image_token_id", 128257)
    if token >= text.config.vocab_size:
        raise bad_field("image_token_id", f"a token of the vocabulary of {text.config.vocab_size}", token)
    return VisionLanguagePlan(text.card, text.config, text.weights, whole=card, vision=vision, vision_weights=weights, image_token_id=token)


def _refuse_packed(card: ModelCard) -> None:
    what = "GGUF files" if card.format == "gguf" else "quantized checkpoints" if card.quantization is not None else None
    if what is not None:
        raise NotBuiltError(
            f"{what} of models that read images ({card.architecture}) are not built", param="model",
            fix="Use the model's unquantized safetensors.",
        )  # fmt: skip


def _decoder_card(card: ModelCard) -> ModelCard:
    """The card as that of a language model alone."""
    config: Mapping[str, Any] = card.config
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        raise bad_field("text_config", "an object", text)
    kind = text.get("model_type", "llama")
    if kind not in _DECODERS:
        raise NotBuiltError(
            f"{card.architecture} with a decoder of type {kind!r:.40}; built: {', '.join(_DECODERS)}", param="text_config", fix="Choose another model."
        )
    tensors = {
        "model." + name.removeprefix(_TEXT) if name.startswith(_TEXT) else name: tensor
        for name, tensor in card.tensors.items()
        if name.startswith(_TEXT) or name == HEAD
    }
    return replace(
        card, architecture=_DECODERS[kind], model_type=kind, config={**text, "tie_word_embeddings": flag(config, "tie_word_embeddings")},
        tensors=tensors, parameters=sum(tensor.elements for tensor in tensors.values()),
    )  # fmt: skip
