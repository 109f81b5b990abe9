"""How many bytes the KV cache may take on a CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.byte_text import byte_text
from headway.errors import CapacityError, ConfigError
from headway.host.memory_budget import MemoryBudget

DEFAULT_BYTES: Final = 2 << 30
DEFAULT_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class KvBudget:
    """`nbytes` for the cache; `rule` is the arithmetic that gave it, for people."""

    nbytes: int
    rule: str


def kv_budget(
    memory: MemoryBudget,
    *,
    resident_bytes: int,
    weight_bytes: int = 0,
    gpu_memory_utilization: float | None = None,
    kv_cache_memory_bytes: int | None = None,
) -> KvBudget:
    """Apply the first rule that holds: explicit bytes; share of the memory limit; min(2 GiB, 25 % of what is available).

    `resident_bytes` is the RSS of this process; `weight_bytes` are weights that are still to be loaded (0 once they
    are part of the RSS). Source of the share rule: vLLM on CPU, limit x utilization - what the process has.

    Raises CapacityError (`no_memory_for_kv`) when nothing is left, ConfigError for impossible values.
    """
    if kv_cache_memory_bytes is not None:
        if kv_cache_memory_bytes <= 0:
            raise ConfigError(
                f"--kv-cache-memory-bytes must be positive, found {kv_cache_memory_bytes}",
                param="kv_cache_memory_bytes",
            )
        if kv_cache_memory_bytes > memory.limit:
            raise CapacityError(
                f"--kv-cache-memory-bytes asks for {byte_text(kv_cache_memory_bytes)}, the memory limit is {byte_text(memory.limit)}"
                f" ({memory.limited_by})",
                reason="no_memory_for_kv",
                param="kv_cache_memory_bytes",
                fix="Ask for less.",
            )
        return KvBudget(kv_cache_memory_bytes, "--kv-cache-memory-bytes")
    if gpu_memory_utilization is not None:
        return _share(memory, resident_bytes, weight_bytes, gpu_memory_utilization)
    available = max(0, memory.available - weight_bytes)
    nbytes = min(DEFAULT_BYTES, int(DEFAULT_SHARE * available))
    rule = f"min({byte_text(DEFAULT_BYTES)}, 25 % of {byte_text(available)} available)"
    return KvBudget(nbytes, rule)


def _share(memory: MemoryBudget, resident_bytes: int, weight_bytes: int, share: float) -> KvBudget:
    if not 0 < share <= 1:
        raise ConfigError(
            f"--gpu-memory-utilization must be over 0 and at most 1, found {share}", param="gpu_memory_utilization"
        )
    left = int(memory.limit * share) - resident_bytes - weight_bytes
    rule = f"{byte_text(memory.limit)} limit x {share:g} - {byte_text(weight_bytes)} weights to load - {byte_text(resident_bytes)} of this process"
    if left <= 0:
        raise CapacityError(
            f"no memory is left for the KV cache: {rule} = {byte_text(left)} (limit set by {memory.limited_by})",
            reason="no_memory_for_kv",
            param="gpu_memory_utilization",
            fix="Raise --gpu-memory-utilization, give --kv-cache-memory-bytes, or serve a smaller or more quantized model.",
        )
    if left > memory.available:
        left, rule = memory.available, f"{rule}, cut to the {byte_text(memory.available)} that are available"
    return KvBudget(left, rule)
