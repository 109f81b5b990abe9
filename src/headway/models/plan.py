"""Which implementation runs a model: one of ours, or that of transformers with our attention."""

from __future__ import annotations

import logging
from typing import Protocol

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM, ServedConfig
from headway.models.fill import Progress
from headway.models.implementation import Implementation
from headway.models.native import plan_native
from headway.models.registry import ARCHITECTURES
from headway.models.vision.plan import VISION_LANGUAGE, plan_vision_language

_log = logging.getLogger(__name__)


class ModelPlan(Protocol):
    """A model that can be loaded: everything that is known without reading weights."""

    @property
    def config(self) -> ServedConfig: ...

    @property
    def parameters(self) -> int: ...

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> CausalLM:
        """The model with its weights in `dtype`; `progress(done, total)` is called with checkpoint bytes."""
        ...


def plan_model(card: ModelCard, context_length: int, implementation: Implementation = "auto") -> ModelPlan:
    """`vllm` (the spelling of vLLM) = only our own implementation, `transformers` = only the fallback, `auto` = ours where
    there is one that can run this config.

    Raises ArtifactError and NotBuiltError; what `auto` cannot run either way raises what our own implementation says, if
    there is one.
    """
    if card.architecture in VISION_LANGUAGE and implementation != "transformers":
        return plan_vision_language(card, context_length)
    if implementation == "vllm" or card.architecture == "":
        return plan_native(card, context_length)
    own: NotBuiltError | None = None
    if implementation == "auto" and card.architecture in ARCHITECTURES:
        try:
            return plan_native(card, context_length)
        except NotBuiltError as error:
            own = error
    from headway.models.fallback.planned import plan_fallback  # imports transformers, which takes seconds

    try:
        plan = plan_fallback(card, context_length)
    except (ArtifactError, NotBuiltError):
        if own is not None:
            raise own from None
        raise
    if own is not None:
        _log.warning("%s is run by transformers, since Headway's own implementation cannot: %s", card.architecture, own.message)
    return plan
