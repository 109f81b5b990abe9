"""load_model: a card -> a model with its weights packed. Everything is checked before anything is allocated."""

from __future__ import annotations

import logging
import re
from typing import Final

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError, ConfigError
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.interface import Kernels
from headway.kernels.torch_backend import TORCH
from headway.models import gguf_weights, hf_weights
from headway.models.causal_lm import CausalLM
from headway.models.decoder import Decoder
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import Progress, fill
from headway.models.registry import architecture
from headway.models.weight_rules import PlacedWeight, WeightRule, place
from headway.quantization.supported import check_quantization, check_types

_log = logging.getLogger(__name__)

DTYPES: Final = (torch.bfloat16, torch.float32)
_SHOWN: Final = 8

# Tensors that hold nothing a config does not say: rotary tables, which are computed.
_COMPUTED: Final = re.compile(r"rotary_emb\.inv_freq$|^rope_(freqs|factors_\w+)\.weight$")


def load_model(
    card: ModelCard, dtype: torch.dtype, *, progress: Progress | None = None, kernels: Kernels = TORCH
) -> CausalLM:
    """Read, convert to `dtype` and pack the weights of a model, one matrix at a time.

    `progress(done, total)` is called with checkpoint bytes after every module. Memory peaks at the packed weights plus
    the largest matrix once.

    Raises ArtifactError (`unsupported_architecture`, `invalid_model_config`, `missing_tensor`, `tensor_shape`,
    `unsupported_tensor_type`, ...), NotBuiltError for formats and features that are not there, ConfigError for the dtype.
    """
    if dtype not in DTYPES:
        names = ", ".join(str(known).removeprefix("torch.") for known in DTYPES)
        raise ConfigError(
            f"--dtype {str(dtype).removeprefix('torch.')} has no fast arithmetic here; supported: {names}",
            reason="unsupported_dtype", param="dtype", fix="Use --dtype bfloat16.",
        )  # fmt: skip
    declared = architecture(card.architecture)
    config = declared.configure(card.config)
    check_quantization(card)
    weights = list(
        place(_rules(card, config, declared.gguf if card.format == "gguf" else declared.safetensors), config)
    )
    _check(card, weights)
    model = Decoder(config, dtype, kernels)
    fill(model, card, weights, progress or (lambda done, total: None))
    use_huge_pages()
    return model


def _rules(card: ModelCard, config: DecoderConfig, rules: tuple[WeightRule, ...]) -> tuple[WeightRule, ...]:
    """A tied model without a head of its own takes the embedding. A head that is there is used: tools that untie weights
    forget to say so in the config, and one that is really tied is equal."""
    names = gguf_weights if card.format == "gguf" else hf_weights
    if not config.tie_word_embeddings or names.HEAD in card.tensors:
        return rules
    return tuple(rule for rule in rules if rule.source != names.HEAD)


def _check(card: ModelCard, weights: list[PlacedWeight]) -> None:
    missing = [weight.source for weight in weights if weight.source not in card.tensors]
    if missing:
        raise ArtifactError(
            f"{len(missing)} of {len(weights)} tensors are missing: {_some(missing)}", reason="missing_tensor",
            param=missing[0], fix="Download the model again, or check that config.json belongs to these weights.",
        )  # fmt: skip
    for weight in weights:
        found = card.tensors[weight.source].shape
        if found != weight.shape:
            raise ArtifactError(
                f"tensor {weight.source} has shape {list(found)}, the config says {list(weight.shape)}",
                reason="tensor_shape", param=weight.source, fix="Check that config.json belongs to these weights.",
            )  # fmt: skip
    check_types(card.tensors[weight.source] for weight in weights)
    used = {weight.source for weight in weights}
    extra = [name for name in card.tensors if name not in used and not _COMPUTED.search(name)]
    if extra:
        _log.info("%d tensors of %s are not used: %s", len(extra), card.reference, _some(extra))


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
