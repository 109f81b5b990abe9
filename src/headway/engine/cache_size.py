"""How large the KV cache is and how long a sequence may be."""

from __future__ import annotations

import logging
import os

import torch

from headway.artifacts.card import ModelCard
from headway.capacity.fit import AUTO, CapacityReport, fit
from headway.capacity.kv_budget import kv_budget
from headway.capacity.kv_geometry import KvGeometry
from headway.engine.config import EngineConfig
from headway.engine.device_memory import device_memory
from headway.errors import ConfigError
from headway.kernels.interface import CPU
from headway.kernels.paged_kv import SCALE_BYTES, KVShape

_log = logging.getLogger(__name__)
_GIB = 1 << 30


def cache_size(
    config: EngineConfig, card: ModelCard, shape: KVShape, kept: torch.dtype, weight_bytes: int, *,
    to_load: int = 0, longest: int | None = None, device: torch.device = CPU,
) -> CapacityReport:  # fmt: skip
    """`kept` is the dtype of the cache. `weight_bytes` are in memory in the end, of which `to_load` are not there yet. `longest` is the length that the model was loaded for: with
    `--max-model-len auto` a sequence may not become longer. The cache is on `device`. Raises ConfigError, CapacityError."""
    memory, taken = device_memory(device)
    budget = kv_budget(
        memory, resident_bytes=taken, weight_bytes=to_load,
        gpu_memory_utilization=config.gpu_memory_utilization, kv_cache_memory_bytes=config.kv_cache_memory_bytes,
    )  # fmt: skip
    automatic = config.max_model_len == AUTO
    report = fit(
        KvGeometry(shape.num_layers, shape.num_kv_heads, shape.head_dim, SCALE_BYTES.get(kept, 0)), budget, weight_bytes=weight_bytes,
        kv_dtype_bytes=kept.itemsize, block_size=config.block_size, max_model_len=config.max_model_len,
        context_length=longest if automatic and longest is not None else card.context_length,
        num_blocks_override=config.num_gpu_blocks_override,
        allow_longer_context=os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1",
    )  # fmt: skip
    if not config.enable_chunked_prefill and config.max_num_batched_tokens < report.max_model_len:
        raise ConfigError(
            f"without chunked prefill a step must hold a whole prompt: max_num_batched_tokens ({config.max_num_batched_tokens}) is less "
            f"than max_model_len ({report.max_model_len})",
            param="max_num_batched_tokens", fix=f"Give --max-num-batched-tokens {report.max_model_len}, or leave chunked prefill on.",
        )  # fmt: skip
    return report


def log_cache_size(report: CapacityReport, device: torch.device = CPU) -> None:
    """The lines that people look for."""
    _log.info("Using max model len %d", report.max_model_len)
    _log.info("Available KV cache memory: %.2f GiB", report.budget.nbytes / _GIB)
    _log.info("Capacity: %s", report.equation())
    _log.info(
        "%s KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx", "CPU" if device.type == "cpu" else "GPU",
        f"{report.tokens:,}", f"{report.max_model_len:,}", report.max_concurrency,
    )  # fmt: skip
