"""Which implementation runs the model, for sequences of which length, in how large a cache: before weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.fit import AUTO, CapacityReport
from headway.engine.cache_size import cache_size
from headway.engine.config import EngineConfig
from headway.models.dummy import plan_dummy
from headway.models.plan import ModelPlan, plan_model


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """`expected` is reckoned with the memory that the weights will take."""

    plan: ModelPlan
    expected: CapacityReport


def planned_model(config: EngineConfig, card: ModelCard, dtype: torch.dtype) -> PlannedModel:
    """Raises ArtifactError, NotBuiltError, ConfigError, CapacityError.

    With `--max-model-len auto` the length follows from the cache, and the model (its rotary embedding) from the length.
    """
    asked = config.max_model_len
    context = asked if asked is not None and asked != AUTO else card.context_length
    plan = _plan(config, card, context or 1)
    expected = cache_size(config, card, plan.config.kv_shape, dtype, plan.parameters, to_load=plan.parameters * dtype.itemsize)
    if expected.max_model_len != context:
        plan = _plan(config, card, expected.max_model_len)
    return PlannedModel(plan, expected)


def _plan(config: EngineConfig, card: ModelCard, context_length: int) -> ModelPlan:
    if config.load_format == "dummy":
        return plan_dummy(card, context_length, config.seed)
    return plan_model(card, context_length, config.model_impl)
