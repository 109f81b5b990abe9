"""Random weights in place of a checkpoint (`--load-format dummy`): for measuring a model whose weights are not at hand.

Numbers as of an untrained model, the same for the same seed: what is written is noise, but takes the time of real text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from headway.artifacts.card import ModelCard, TensorInfo
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.decoder import Decoder
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import Progress, fill
from headway.models.native import placed_weights
from headway.models.weight_rules import PlacedWeight

_SPREAD: Final = 0.02  # standard deviation of fresh weights, as in most configurations (initializer_range)


@dataclass(frozen=True, slots=True)
class DummyPlan:
    """A native model without a checkpoint."""

    config: DecoderConfig
    weights: tuple[PlacedWeight, ...]
    seed: int

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in _imagined(self.weights).values())

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """`progress` counts the bytes that a float32 checkpoint would have."""
        model = Decoder(self.config, dtype, kernels)
        generator = torch.Generator().manual_seed(self.seed)

        def invent(info: TensorInfo, target: torch.Tensor) -> None:
            if "norm" in info.name and info.name.endswith("weight"):
                target.fill_(1.0)
            else:
                target.normal_(0.0, _SPREAD, generator=generator)

        fill(model, _imagined(self.weights), self.weights, invent, progress, device=kernels.device)
        return model


def plan_dummy(card: ModelCard, context_length: int, seed: int) -> DummyPlan:
    """Only the card's config is used. Raises ArtifactError and NotBuiltError as `plan_native` does, but for weights."""
    config, weights = placed_weights(card, context_length)
    return DummyPlan(config, weights, seed)


def _imagined(weights: tuple[PlacedWeight, ...]) -> dict[str, TensorInfo]:
    found = {}
    for weight in weights:
        info = TensorInfo(weight.source, "F32", weight.shape, 0, Path(), 0)
        found[weight.source] = TensorInfo(info.name, info.dtype, info.shape, 4 * info.elements, info.file, 0)
    return found
