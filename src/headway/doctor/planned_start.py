"""What the start of `headway serve` would say about memory, before anything is loaded: the engine's own arithmetic, from the
headers of the model's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.artifacts.model_cards import card_of_path
from headway.capacity.card_shape import card_shape
from headway.capacity.fit import AUTO, fit
from headway.capacity.kv_budget import kv_budget
from headway.capacity.kv_geometry import KvGeometry
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_host import BLOCK_SIZE, DTYPE_BYTES, auto_dtype_bytes, on_host
from headway.doctor.collect.model import model_on_disk
from headway.errors import ArtifactError, CapacityError, ConfigError
from headway.flags.values import read_size
from headway.host.instruction_set import instruction_set
from headway.host.memory_budget import MemoryBudget, memory_budget

_GIB: Final = 2**30


def start_refusal(flags: Mapping[str, str], env: Mapping[str, str], limit_gib: float | None) -> str:
    """The message with which `headway serve` would end, "" when it would start, or when the model is not on disk.

    `flags`: with underscores, as typed. `limit_gib`: of the container it starts in, when that is less than this machine has.
    """
    memory = _limited(memory_budget(), limit_gib)  # before torch is in this process
    shape = _shape(flags.get("model", ""), flags)
    if shape is None:
        return ""
    dtype_bytes = _dtype_bytes(flags)
    deployment = on_host(shape, memory.available, dtype_bytes)
    if deployment.engine != "headway" or not deployment.shape.kv:
        return ""
    layer = deployment.shape.kv[0]
    space = env.get("VLLM_CPU_KVCACHE_SPACE")
    try:
        share = flags.get("gpu_memory_utilization")
        budget = kv_budget(
            memory, resident_bytes=deployment.need(1, 1).process, weight_bytes=deployment.weights,
            gpu_memory_utilization=None if share is None else float(share),
            kv_cache_memory_bytes=_size(flags, "kv_cache_memory_bytes") or (int(float(space) * _GIB) if space else None) or None,
        )  # fmt: skip
        asked = flags.get("max_model_len")
        fit(
            KvGeometry(layer.count, layer.heads, layer.numbers // 2), budget, weight_bytes=deployment.weights, kv_dtype_bytes=dtype_bytes,
            block_size=_size(flags, "block_size") or BLOCK_SIZE, max_model_len=AUTO if asked in ("auto", "-1") else _size(flags, "max_model_len"),
            context_length=shape.context_length, num_blocks_override=_size(flags, "num_gpu_blocks_override"),
            allow_longer_context=env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1",
        )  # fmt: skip
    except (CapacityError, ConfigError) as error:
        return error.message
    except ValueError:
        return ""  # a value that is no number: the flags are judged elsewhere
    return ""


def _shape(model: str, flags: Mapping[str, str]) -> ModelShape | None:
    """None without files, or with files that the other rules judge."""
    path = model_on_disk(model) if model else None
    try:
        if path is None:
            return None
        card = card_of_path(path, model)
        shape = card_shape(card)
        if shape.kind != "decoder" or (shape.quantization is None and card.format != "gguf"):
            return shape
        from headway.models.loaded_shape import loaded_shape  # imports torch, which takes a second

        return loaded_shape(shape, card, _dtype_bytes(flags))
    except (ArtifactError, CapacityError, OSError):
        return None


def _dtype_bytes(flags: Mapping[str, str]) -> int:
    return DTYPE_BYTES.get(flags.get("dtype", "auto")) or auto_dtype_bytes(instruction_set())


def _limited(memory: MemoryBudget, limit_gib: float | None) -> MemoryBudget:
    if limit_gib is None or limit_gib * _GIB >= memory.limit:
        return memory
    limit = int(limit_gib * _GIB)
    return MemoryBudget(memory.total, limit, min(memory.available, limit), "the container's limit")


def _size(flags: Mapping[str, str], name: str) -> int | None:
    """Raises ValueError when it is no size."""
    return read_size(flags[name]) if name in flags else None
