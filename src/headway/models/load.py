"""load_model: a card -> a model with its weights. Everything is checked before anything is allocated."""

from __future__ import annotations

from typing import Final

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ConfigError
from headway.kernels.choice import default_kernels
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.fill import Progress
from headway.models.implementation import Implementation
from headway.models.plan import ModelPlan, plan_model

DTYPES: Final = (torch.bfloat16, torch.float32)


def load_model(
    card: ModelCard,
    dtype: torch.dtype,
    *,
    context_length: int | None = None,
    implementation: Implementation = "auto",
    progress: Progress | None = None,
    kernels: Kernels | None = None,
) -> CausalLM:
    """Read, convert to `dtype` and pack the weights of a model, one matrix at a time.

    `context_length` is how many positions a sequence of this deployment may take, None = what the card states.
    `progress(done, total)` is called with checkpoint bytes after every module. Memory peaks at the packed weights plus
    the largest matrix once.

    Raises ArtifactError (`unsupported_architecture`, `invalid_model_config`, `missing_tensor`, `tensor_shape`,
    `unsupported_tensor_type`, ...), NotBuiltError for formats and features that are not there, ConfigError for the dtype.
    """
    plan = plan_model(card, context_length or card.context_length or 1, implementation)
    return load_planned(plan, dtype, progress=progress, kernels=kernels)


def load_planned(
    plan: ModelPlan, dtype: torch.dtype, *, progress: Progress | None = None, kernels: Kernels | None = None
) -> CausalLM:
    """The second half of `load_model`, for those who need to know the plan before weights are read."""
    check_dtype(dtype)
    return plan.load(dtype, kernels or default_kernels(dtype), progress or (lambda done, total: None))


def check_dtype(dtype: torch.dtype) -> None:
    """Raises ConfigError (`unsupported_dtype`) unless it is one of DTYPES."""
    if dtype not in DTYPES:
        names = ", ".join(str(known).removeprefix("torch.") for known in DTYPES)
        raise ConfigError(
            f"--dtype {str(dtype).removeprefix('torch.')} has no fast arithmetic here; supported: {names}",
            reason="unsupported_dtype", param="dtype", fix="Use --dtype bfloat16.",
        )  # fmt: skip
