"""Everything about an encoder that is known before its weights are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes
from headway.models.cpu_only import refuse_other_devices
from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.encoder import Encoder
from headway.models.encoders.encoder_config import EncoderConfig
from headway.models.encoders.native_encoder import NativeEncoder
from headway.models.encoders.registry import ENCODERS
from headway.models.encoders.transformers_plan import plan_transformers_encoder
from headway.models.fill import Progress
from headway.models.prepared.filling import fill_from_card
from headway.models.weight_rules import PlacedWeight, WeightRule, place, spelled
from headway.quantization.logical_card import logical_card
from headway.quantization.supported import check_types
from headway.quantization.zero_biases import without_zero_biases


class EncoderPlan(Protocol):
    """`remaining` are the names of the tensors that are no part of the encoder: heads, poolers. Read them with
    `WeightReader(plan.card).tensor(name, torch.float32)`; names that nobody reads go to
    `checkpoint_tensors.refuse_unexpected`."""

    @property
    def card(self) -> ModelCard: ...
    @property
    def prefix(self) -> str: ...
    @property
    def hidden_size(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def parameters(self) -> int:
        """Of the encoder."""
        ...

    @property
    def remaining(self) -> tuple[str, ...]: ...

    def in_int8(self) -> EncoderPlan:
        """Matrices of floats become int8 while they are loaded. Raises NotBuiltError where that cannot be done."""
        ...

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> Encoder:
        """Read, convert and pack the weights, one matrix at a time. `progress(done, total)` in checkpoint bytes."""
        ...


@dataclass(frozen=True, slots=True)
class NativeEncoderPlan:
    """An encoder with a table of its own, and where its weights are. `rounding` is a method of `quantization.online`."""

    card: ModelCard
    prefix: str
    config: EncoderConfig
    weights: tuple[PlacedWeight, ...]
    unused: frozenset[str]
    rounding: str | None = None

    @property
    def hidden_size(self) -> int:
        return self.config.hidden_size

    @property
    def num_layers(self) -> int:
        return self.config.num_layers

    @property
    def max_positions(self) -> int:
        return self.config.max_positions

    @property
    def parameters(self) -> int:
        return sum(weight.stored(self.card.tensors).elements for weight in self.weights)

    @property
    def remaining(self) -> tuple[str, ...]:
        taken = self.unused.union(weight.source for weight in self.weights)
        return tuple(name for name in self.card.tensors if name not in taken)

    def in_int8(self) -> NativeEncoderPlan:
        # One scale for each output, and inputs rounded 64 at a time, would turn embeddings of all-MiniLM-L6-v2 by a cosine of 0.9984, these
        # by 0.9994: after a LayerNorm a few inputs are far larger than all others.
        return replace(self, rounding="int8_32")

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> Encoder:
        """Raises NotBuiltError for batch invariance of disentangled attention, which runs rows of one length together."""
        if kernels is INVARIANT and self.config.disentangled is not None:
            raise NotBuiltError(
                f"batch invariance of {self.card.model_type}", param="batch_invariant", fix="Leave it out, or use another architecture."
            )
        refuse_other_devices(kernels, f"the encoder {self.card.model_type}")
        encoder = NativeEncoder(self.config, dtype, kernels)
        fill_from_card(encoder, self.card, self.weights, kernels, progress, head=False, rounding=self.rounding)
        encoder.prepare()
        use_huge_pages()
        return encoder


def plan_encoder(card: ModelCard, prefix: str | None = None) -> EncoderPlan:
    """`prefix` is what the names of the encoder's tensors begin with ("", "bert.", "model.", ...); None: found by the name of
    the token embedding.

    Packed weights are unpacked while they are loaded; the plan's card has them as the model sees them.

    Raises ArtifactError (`unsupported_architecture`, `invalid_model_config`, `ambiguous_encoder`, `missing_tensor`, `tensor_shape`,
    ..., those of `logical_card`), NotBuiltError for formats and features that are not there.
    """
    card = logical_card(card)
    declared = ENCODERS.get(card.model_type)
    own: NotBuiltError | None = None
    if declared is not None and card.format == "safetensors":
        try:
            return plan_native_encoder(card, declared, prefix)
        except NotBuiltError as error:
            own = error
    try:
        return plan_transformers_encoder(card, prefix)
    except (ArtifactError, NotBuiltError):
        if own is not None:
            raise own from None
        raise


def plan_native_encoder(card: ModelCard, declared: EncoderArchitecture, prefix: str | None) -> NativeEncoderPlan:
    """Raises ArtifactError and NotBuiltError."""
    config = declared.configure(card.config)
    start = find_prefix(card, declared) if prefix is None else prefix
    inside = [name.removeprefix(start) for name in card.tensors if name.startswith(start)]
    rules = [replace(rule, source=start + rule.source) for rule in spelled(declared.table, inside)]
    weights = tuple(place(rules, config))
    card = without_zero_biases(card, {weight.source for weight in weights})
    refuse_missing(card, [weight.source for weight in weights if weight.source not in card.tensors])
    refuse_shapes(
        card, [(w.source, card.tensors[w.source].shape, w.shape) for w in weights if card.tensors[w.source].shape != w.shape]
    )
    check_types(card.tensors[weight.source] for weight in weights)
    return NativeEncoderPlan(card, start, config, weights, frozenset(start + name for name in declared.unused))


def find_prefix(card: ModelCard, declared: EncoderArchitecture) -> str:
    """What stands before the token embedding. Raises ArtifactError (`ambiguous_encoder`) when there are several."""
    first = declared.table[0]
    assert isinstance(first, WeightRule)
    found = [name.removesuffix(first.source) for name in card.tensors if re.search(rf"(^|\.){re.escape(first.source)}$", name)]
    if len(found) > 1:
        raise ArtifactError(
            f"{card.path} holds {len(found)} encoders: {', '.join(repr(each) for each in found[:8])}",
            reason="ambiguous_encoder", param=found[0], fix="Name the prefix of the one that is meant.",
        )  # fmt: skip
    return found[0] if found else ""
