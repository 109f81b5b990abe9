"""Which implementation runs the model, for sequences of which length, in how large a cache: before weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.fit import AUTO, CapacityReport
from headway.capacity.weight_bytes import NO_INTEGERS, head_copy, held_weight_bytes
from headway.engine.cache_dtype import cache_dtype
from headway.engine.cache_size import cache_size
from headway.engine.config import EngineConfig
from headway.engine.images.attachment import image_bytes
from headway.engine.pooling.model_use import model_use
from headway.errors import NotBuiltError
from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT
from headway.models.backbone import plan_backbone
from headway.models.dummy import plan_dummy
from headway.models.native import NativePlan
from headway.models.plan import ModelPlan, plan_model


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """`weight_bytes` is the memory that the weights will take, `expected` is reckoned with it."""

    plan: ModelPlan
    expected: CapacityReport
    weight_bytes: int


def planned_model(
    config: EngineConfig, card: ModelCard, dtype: torch.dtype, kernels: Kernels, rounding: str | None = None
) -> PlannedModel:
    """`rounding` is the method that weights are quantized with while they are loaded. Raises ArtifactError, NotBuiltError, ConfigError, CapacityError.

    With `--max-model-len auto` the length follows from the cache, and the model (its rotary embedding) from the length.
    """
    asked = config.max_model_len
    context = asked if asked is not None and asked != AUTO else card.context_length
    plan = _plan(config, card, context or 1, kernels, rounding)
    copied, integers = 0, NO_INTEGERS  # models of transformers keep one matrix for table and head, and no integers
    if isinstance(plan, NativePlan):
        copied, integers = head_copy(plan.card) * plan.head, plan.integers(kernels)
    weights = held_weight_bytes(plan.parameters, copied, dtype.itemsize, integers) + image_bytes(plan, dtype.itemsize)
    kept = cache_dtype(config.kv_cache_dtype, dtype, kernels)
    expected = cache_size(config, card, plan.config.kv_shape, kept, weights, to_load=weights, device=kernels.device)
    if expected.max_model_len != context:
        plan = _plan(config, card, expected.max_model_len, kernels, rounding)
    return PlannedModel(plan, expected, weights)


def _plan(config: EngineConfig, card: ModelCard, context_length: int, kernels: Kernels, rounding: str | None) -> ModelPlan:
    if not model_use(config, card).has_lm_head:
        plan: ModelPlan = plan_backbone(card, context_length)
        return plan if rounding is None else _rounded(plan, card, rounding)
    if config.load_format == "dummy":
        return plan_dummy(card, context_length, config.seed)
    plan = plan_model(card, context_length, config.model_impl)
    if kernels is INVARIANT and not isinstance(plan, NativePlan):
        raise NotBuiltError(
            f"--batch-invariant is built for native models only, and {card.architecture} is run by transformers",
            param="batch_invariant", fix="Leave it out, or choose a native model (docs/models.md).",
        )  # fmt: skip
    return plan if rounding is None else _rounded(plan, card, rounding)


def _rounded(plan: ModelPlan, card: ModelCard, rounding: str) -> NativePlan:
    if not isinstance(plan, NativePlan) or any(plan.config.layer_sparse):
        what = "has layers of experts" if isinstance(plan, NativePlan) else "is run by transformers"
        raise NotBuiltError(
            f"--quantization {rounding} on an unquantized checkpoint is built for native models without experts, and {card.architecture} {what}",
            param="quantization", fix="Leave the flag out, or use a checkpoint that is quantized.",
        )  # fmt: skip
    return replace(plan, rounding=rounding)
