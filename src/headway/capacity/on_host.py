"""A model on this machine: under Headway's engine, or in the model runtime when it is no language model."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headway.capacity.ceilings import Roofs, Workload
from headway.capacity.deployment import Deployment, headway_weights
from headway.capacity.model_shape import KvLayers, ModelShape
from headway.capacity.process_memory import touched_cache_bytes
from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare
from headway.host.host_roofs import HostRoofs
from headway.host.instruction_set import InstructionSet
from headway.host.matrix_speed import MatrixFormat

DTYPE_BYTES: Final = {"bfloat16": 2, "half": 2, "float16": 2, "float": 4, "float32": 4}
BLOCK_SIZE: Final = 16
STEP_TOKENS: Final = 2048
ROWS: Final = 256


def auto_dtype_bytes(instructions: InstructionSet) -> int:
    """Of `--dtype auto`: bfloat16 where oneDNN has arithmetic for it (AVX-512, or the bf16 extension of Arm), else float32."""
    return 2 if instructions.has("avx512bw", "avx512vl") or instructions.has("bf16") else 4


def on_host(shape: ModelShape, budget: int, dtype_bytes: int = 2, rows: int | None = None, block_size: int = BLOCK_SIZE) -> Deployment:
    """`budget`: bytes that the process may take as a whole. Encoders run in the runtime in float32."""
    if shape.kind != "decoder":
        weights = shape.parameters * 4 if shape.kind == "encoder" else shape.stored_bytes or 0
        return Deployment(shape, "runtime", weights, budget, dtype_bytes=4, rows=rows or ROWS)
    kept = as_headway_keeps(shape)
    return Deployment(
        kept, "headway", headway_weights(shape, dtype_bytes), budget, dtype_bytes=dtype_bytes, cache_number_bytes=dtype_bytes,
        block_size=block_size, step_tokens=STEP_TOKENS, rows=rows or ROWS,
    )  # fmt: skip


def as_headway_keeps(shape: ModelShape) -> ModelShape:
    """One shape for all layers that attend, and all positions of each: windows and latent vectors save nothing here."""
    layers = sum(layer.count for layer in shape.kv)
    return replace(shape, kv=(KvLayers(layers, shape.kv_heads, 2 * shape.head_dim),) if layers else ())


def resident_at_start(deployment: Deployment, cache_bytes: int) -> int:
    """Of the process once it is ready: weights, the process itself, and what of a cache of `cache_bytes` was touched."""
    need = deployment.need(1, 1)
    layers = sum(layer.count for layer in deployment.shape.kv)
    block = round(deployment.block_size * deployment.shape.head_dim * deployment.cache_number_bytes)
    warmed = need.activations if deployment.engine == "runtime" else 0  # the runtime computes before it is ready
    return need.weights + need.process + warmed + touched_cache_bytes(cache_bytes, layers, deployment.shape.kv_heads, block)


def host_workload(deployment: Deployment) -> Workload:
    """The bits that a weight has in memory, on average over what is not a table to look up."""
    shape, width = deployment.shape, deployment.dtype_bytes
    tables = shape.embeddings * width if deployment.engine == "headway" else 0
    multiplied = shape.parameters if shape.tied else shape.parameters - shape.embeddings
    if deployment.engine != "headway" or multiplied <= 0:
        return Workload(shape, 8.0 * width, deployment.cache_number_bytes)
    return Workload(shape, 8.0 * (deployment.weights - tables) / multiplied, deployment.cache_number_bytes)


def host_ceiling_roofs(roofs: HostRoofs, dtype_bytes: int, integers: IntegerShare = NO_INTEGERS) -> Roofs:
    """Of a measurement, for the dtype; products with integer weights are integer arithmetic."""
    kind: MatrixFormat = "int8" if integers.parameters else "bf16" if dtype_bytes == 2 else "fp32"
    return Roofs(roofs.read_bandwidth, roofs.matrix[kind], "measured", roofs.cache_bytes, roofs.cache_bandwidth)
