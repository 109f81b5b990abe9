"""A loaded model made ready for adapters: its layers apply them, and steps without any run as before."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.errors import NotBuiltError
from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import PagedKV
from headway.layers.low_rank import ActiveUpdates, AdaptedLinear
from headway.models.causal_lm import CausalLM
from headway.models.cpu_only import refuse_other_devices
from headway.models.decoder import Decoder
from headway.models.fill import module_at
from headway.models.lora.targets import Targets, adapter_targets
from headway.models.recorded_forward import Forward


@dataclass(frozen=True, slots=True)
class AdaptedModel:
    targets: Targets
    dtype: torch.dtype
    device: torch.device
    active: ActiveUpdates

    def forward(self, without: Forward, plain: Forward) -> Forward:
        """`without` runs batches that no adapter changes (a recorded pass, say), `plain` calls the layers one by one."""

        def run(batch: ForwardBatch, kv: PagedKV) -> torch.Tensor:
            if not batch.adapters:
                return without(batch, kv)
            rows = [(each if isinstance(each, slice) else each.to(self.device), updates) for each, updates in batch.adapters]
            with self.active.applying(rows):
                return plain(batch, kv)

        return run


def adapted(model: CausalLM, architecture_name: str, kernels: Kernels) -> AdaptedModel:
    """Wraps the layers of `model` that adapters may change. Raises NotBuiltError for models that are run by transformers (the fallback), and
    on devices other than the CPU."""
    refuse_other_devices(kernels, "--enable-lora")
    if not isinstance(model, Decoder):
        raise NotBuiltError(
            f"--enable-lora is not built for {architecture_name}, which transformers runs (the fallback)", param="enable_lora",
            fix="Merge the adapter into the model with PEFT (merge_and_unload), or use a model that Headway runs natively.",
        )  # fmt: skip
    targets, active = adapter_targets(architecture_name, model.config), ActiveUpdates()
    for path in targets.modules:
        linear = module_at(model, path)
        linear.packed = AdaptedLinear(linear.packed, path, active, kernels)
    return AdaptedModel(targets, model.dtype, model.device, active)
