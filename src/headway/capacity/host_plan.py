"""A plan for this machine, with the budget and the cache rules of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from headway.capacity.activations import HEADWAY, Step, activation_bytes
from headway.capacity.deployment import Deployment
from headway.capacity.fit import AUTO, fit
from headway.capacity.kv_budget import kv_budget
from headway.capacity.kv_geometry import KvGeometry
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_host import on_host, resident_at_start
from headway.errors import CapacityError, ConfigError
from headway.host.memory_budget import MemoryBudget


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Bytes of one process. `cache` is what the engine reserves, `default_cache` says that it does so without a flag.
    `resident_start` is the process when it is ready, `resident_full` when every block was written and the largest step ran."""

    deployment: Deployment
    fits: bool
    context: int
    sequences: int
    cache: int
    cache_tokens: int
    default_cache: bool
    activations: int
    rule: str
    resident_start: int
    resident_full: int


def host_plan(
    shape: ModelShape, memory: MemoryBudget, *, dtype_bytes: int = 2, context: int | None = None, sequences: int | None = None,
    utilization: float | None = None,
) -> HostPlan:  # fmt: skip
    """Without `sequences` the cache is what `headway serve` reserves by default, enlarged when one sequence of `context` needs more.

    Raises ConfigError for a context beyond the model's, as the engine does.
    """
    budget = memory.available if utilization is None else min(memory.available, int(memory.limit * utilization))
    deployment = on_host(shape, budget, dtype_bytes, sequences)
    if shape.kind != "decoder" or not deployment.shape.kv:
        return _without_cache(deployment, context, sequences)
    most = checked_context(shape, context)
    at_once = sequences or 1
    length = most if context is not None or deployment.fits(most, at_once) else deployment.largest_context(at_once) or most
    default = None if sequences is not None else _default(deployment, memory, length, utilization)
    if default is not None:
        cache, tokens, rule = default
        at_once = max(1, tokens // (-(-length // deployment.block_size) * deployment.block_size))
    else:
        cache = deployment.cache_bytes(length, at_once)
        tokens, rule = at_once * -(-length // deployment.block_size) * deployment.block_size, "--kv-cache-memory-bytes"
    rows = min(deployment.rows, sequences or deployment.rows)
    step = Step(min(deployment.step_tokens, tokens), rows, length)
    activations = activation_bytes(deployment.shape, step, dtype_bytes, HEADWAY)
    need = deployment.need(length, at_once)
    return HostPlan(
        deployment, deployment.fits(length, sequences or 1), length, at_once, cache, tokens, default is not None, activations, rule,
        resident_at_start(deployment, cache), need.weights + need.process + cache + activations,
    )  # fmt: skip


def checked_context(shape: ModelShape, context: int | None) -> int:
    """Raises ConfigError (`context_unknown`, `max_model_len_too_long`)."""
    if context is None:
        if shape.context_length is None:
            raise ConfigError(
                "the model's configuration states no context length", param="max_model_len", reason="context_unknown", fix="Give --max-model-len."
            )
        return shape.context_length
    if shape.context_length is not None and context > shape.context_length:
        raise ConfigError(
            f"--max-model-len {context} is greater than the model's context of {shape.context_length}",
            reason="max_model_len_too_long",
            param="max_model_len",
            fix=f"Use at most {shape.context_length}.",
        )
    return context


def _default(deployment: Deployment, memory: MemoryBudget, length: int, utilization: float | None) -> tuple[int, int, str] | None:
    """Bytes, tokens and rule of the cache that the engine takes by itself, None when it would not hold one sequence."""
    shape = deployment.shape
    layer = shape.kv[0]
    process = deployment.need(1, 1).process
    try:
        budget = kv_budget(memory, resident_bytes=process, weight_bytes=deployment.weights, gpu_memory_utilization=utilization)
        report = fit(
            KvGeometry(layer.count, layer.heads, layer.numbers // 2), budget, weight_bytes=deployment.weights,
            kv_dtype_bytes=int(deployment.cache_number_bytes), block_size=deployment.block_size, max_model_len=AUTO, context_length=length,
        )  # fmt: skip
    except CapacityError:
        return None
    return (report.kv_bytes, report.tokens, budget.rule) if report.max_model_len == length else None


def _without_cache(deployment: Deployment, context: int | None, sequences: int | None) -> HostPlan:
    """Encoders, tables and models without attention: nothing grows with the tokens that came before."""
    length = min(context or 1 << 20, deployment.shape.context_length or 512)
    at_once = sequences or 1
    need = deployment.need(length, at_once)
    return HostPlan(
        deployment, need.total <= deployment.budget, length, at_once, need.cache, 0, True, need.activations, "no cache",
        resident_at_start(deployment, 0), need.total,
    )  # fmt: skip
