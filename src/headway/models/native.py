"""Models with a table of their own: everything is checked before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare
from headway.errors import NotBuiltError
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.checkpoint_tensors import check_tensors
from headway.models.decoder import Decoder
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import Progress
from headway.models.integer_stacks import integer_forms, integer_share, loaded_stacks
from headway.models.packed_orientation import as_packed
from headway.models.prepared.filling import fill_from_card
from headway.models.registry import architecture
from headway.models.weight_rules import PlacedWeight, WeightRule, place, spelled
from headway.quantization.logical_card import logical_card
from headway.quantization.supported import check_types
from headway.quantization.zero_biases import without_zero_biases


@dataclass(frozen=True, slots=True)
class NativePlan:
    """A decoder and where its weights are. Without `head` it makes hidden states, and no logits. `rounding` is a method of
    `quantization.online`, which the matrices of the layers are rounded to."""

    card: ModelCard
    config: DecoderConfig
    weights: tuple[PlacedWeight, ...]
    head: bool = True
    rounding: str | None = None

    @property
    def parameters(self) -> int:
        return self.card.parameters

    def integers(self, kernels: Kernels) -> IntegerShare:
        """What of the weights stays integers in memory when it is loaded for these kernels."""
        if kernels.integers is None:
            return NO_INTEGERS
        model = Decoder(self.config, torch.float32, kernels)
        stacks = loaded_stacks(model, self.weights, self.card.tensors, head=self.head, rounding=self.rounding, kernels=kernels.integers)
        return integer_share(integer_forms(model, stacks, self.card.tensors, kernels.integers, self.rounding), stacks, kernels.integers)

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """Read, convert and pack the weights, one matrix at a time; or pack what was converted before (`prepared`)."""
        model = Decoder(self.config, dtype, kernels)
        fill_from_card(model, self.card, self.weights, kernels, progress, head=self.head, rounding=self.rounding)
        use_huge_pages()
        return model


def plan_native(card: ModelCard, context_length: int) -> NativePlan:
    """Raises ArtifactError (`unsupported_architecture`, `invalid_model_config`, `missing_tensor`, `tensor_shape`,
    `unsupported_tensor_type`, ...), NotBuiltError for formats and features that are not there."""
    card = logical_card(card)
    config, weights = placed_weights(card, context_length)
    card = without_zero_biases(card, {weight.source for weight in weights})
    check_tensors(card, {weight.source: weight.shape for weight in weights})
    check_types(card.tensors[weight.source] for weight in weights)
    return NativePlan(card, config, weights)


def placed_weights(card: ModelCard, context_length: int) -> tuple[DecoderConfig, tuple[PlacedWeight, ...]]:
    """The decoder that the config describes, and the tensors that it needs of a logical card."""
    declared = architecture(card.architecture)
    if card.format == "gguf" and not declared.gguf:
        raise _gguf_not_built(card.architecture)
    config = declared.configure(card.config, context_length)
    if card.format == "gguf" and (unconfirmed := declared.gguf_unconfirmed(config)) is not None:
        raise _gguf_not_built(f"{card.architecture} with {unconfirmed}")
    table = spelled(declared.gguf if card.format == "gguf" else declared.safetensors, card.tensors)
    return config, as_packed(card, place(_rules(card, config, table), config))


def _gguf_not_built(what: str) -> NotBuiltError:
    return NotBuiltError(
        f"GGUF files of architecture {what} are not built", param="model", fix="Use the safetensors checkpoint of the model."
    )


def _rules(card: ModelCard, config: DecoderConfig, rules: tuple[WeightRule, ...]) -> tuple[WeightRule, ...]:
    """A tied model without a head of its own takes the embedding. A head that is there is used: tools that untie weights
    forget to say so in the config, and one that is really tied is equal."""
    if not config.tie_word_embeddings:
        return rules
    return tuple(rule for rule in rules if rule.module != "head" or rule.source in card.tensors)
