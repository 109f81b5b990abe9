"""Models that have no table of their own here: the model of transformers, with paged attention put into it.

Slower than a native model: weights are not packed and every layer is a tree of torch modules. What it computes is what
transformers computes; a trial run without weights finds what it asks of attention, and a self-check with them compares it
with transformers' own attention before the first request.
"""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass
from typing import Any

import torch

from headway.artifacts.card import ModelCard
from headway.errors import NotBuiltError
from headway.kernels.huge_pages import use_huge_pages
from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT
from headway.models.causal_lm import CausalLM
from headway.models.cpu_only import refuse_other_devices
from headway.models.fallback import attention
from headway.models.fallback.fixed_rope import fix_frequencies
from headway.models.fallback.head import decoder_of, head_of
from headway.models.fallback.model import FallbackConfig, FallbackModel
from headway.models.fallback.refusal import first_line, refusal
from headway.models.fallback.self_check import check_fallback
from headway.models.fallback.transformers_class import FallbackClass, fallback_class
from headway.models.fallback.trial_run import AttentionNeeds, attention_needs
from headway.models.fallback.weights import load_weights
from headway.models.fill import Progress
from headway.quantization.logical_card import logical_card

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FallbackPlan:
    """Everything known before weights are read."""

    card: ModelCard
    chosen: FallbackClass
    needs: AttentionNeeds
    context_length: int
    config: FallbackConfig
    parameters: int

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """Raises ArtifactError (`unsupported_architecture`, `missing_tensor`, `tensor_shape`, `weights_unreadable`), NotBuiltError for
        kernels that promise more than transformers' own layers can keep."""
        if kernels is INVARIANT:
            raise NotBuiltError(
                f"--batch-invariant is not built for {self.chosen.architecture}, whose layers are those of transformers (the fallback)",
                param="batch_invariant", fix="Leave it out, or use a model that Headway runs natively.",
            )  # fmt: skip
        refuse_other_devices(kernels, f"{self.chosen.architecture}, whose layers are those of transformers (the fallback),")
        _log.warning(
            "%s is run by transformers (the fallback), which is slower than a native implementation", self.chosen.architecture
        )
        original = load_weights(self.card, self.chosen, dtype, progress)
        fix_frequencies(original, self.context_length)
        model = FallbackModel(original, self.needs, self.config, dtype, kernels)
        check_fallback(self.chosen.architecture, model, original)
        use_huge_pages()
        return model


def plan_fallback(card: ModelCard, context_length: int) -> FallbackPlan:
    """Raises ArtifactError (`unsupported_architecture`, `invalid_model_config`, those of `logical_card`) for what cannot be run,
    NotBuiltError for formats that are not read."""
    if card.format == "gguf":
        raise NotBuiltError(
            f"GGUF files of architecture {card.architecture or card.model_type!r:.80} are not built: only models that Headway runs"
            " natively are read from GGUF", param="model", fix="Use the safetensors checkpoint of the model.",
        )  # fmt: skip
    chosen = fallback_class(card)
    attention.register()
    model = _without_weights(chosen)
    needs = attention_needs(model, decoder_of(model), context_length)
    vocabulary = _vocabulary(chosen.architecture, model)
    card = logical_card(card)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return FallbackPlan(card, chosen, needs, context_length, FallbackConfig(vocabulary, needs.kv_shape), parameters)


def _without_weights(chosen: FallbackClass) -> Any:
    try:
        with torch.device("meta"):
            # bfloat16 and matrix products by batches: the kernels that the meta device knows.
            model = chosen.model_class._from_config(
                copy.deepcopy(chosen.config), dtype=torch.bfloat16, attn_implementation=attention.NAME,
                experts_implementation="batched_mm",
            )  # fmt: skip
    except Exception as error:  # code of many authors: anything may be raised
        raise refusal(chosen.architecture, f"transformers cannot build it from its config: {first_line(error)}") from error
    fix_frequencies(model, None)
    return model.eval()


def _vocabulary(architecture: str, model: Any) -> int:
    """Width of the logits."""
    hidden = torch.zeros(1, getattr(model.get_output_embeddings(), "in_features", 1), dtype=torch.bfloat16, device="meta")
    try:
        with torch.no_grad():
            return int(head_of(model)(hidden).shape[-1])
    except Exception as error:  # code of many authors: anything may be raised
        raise refusal(architecture, f"its output head does not run by itself: {first_line(error)}") from error
