"""What --enable-lora adds to an engine."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from headway.capacity.byte_text import byte_text
from headway.engine.config import EngineConfig
from headway.engine.lora.registry import AdapterRegistry
from headway.engine.lora.slots import AdapterSlots
from headway.engine.lora.step_adapters import StepAdapters
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.lora.adapted_model import AdaptedModel, adapted
from headway.models.recorded_forward import Forward

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lora:
    """`slots` go to the scheduler, `steps` and `forward` to the model runner, the registry to whoever loads adapters."""

    registry: AdapterRegistry
    slots: AdapterSlots
    steps: StepAdapters
    model: AdaptedModel

    def forward(self, without: Forward, plain: Forward) -> Forward:
        return self.model.forward(without, plain)


def make_lora(config: EngineConfig, model: CausalLM, architecture: str, kernels: Kernels) -> Lora | None:
    """Before anything is recorded of the model: its layers are wrapped. None without --enable-lora. Raises NotBuiltError."""
    if not config.enable_lora:
        return None
    found = adapted(model, architecture, kernels)
    dtype = found.dtype if config.lora_dtype == "auto" else getattr(torch, config.lora_dtype)
    kept = config.max_cpu_loras or config.max_loras
    registry = AdapterRegistry(found.targets, config.max_lora_rank, dtype, kept, model.device)
    _log.info(
        "LoRA: up to %d adapter(s) in a step, %d in memory, each at most %s (rank %d for all of %s)", config.max_loras, kept,
        byte_text(dtype.itemsize * found.targets.held_numbers(config.max_lora_rank)), config.max_lora_rank, ", ".join(found.targets.kinds),
    )  # fmt: skip
    return Lora(registry, AdapterSlots(config.max_loras), StepAdapters(registry), found)
