"""A model on a card under vLLM: its weights in a format, the share of memory that it may use, the defaults of its server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.ceilings import Roofs, Workload
from headway.capacity.deployment import GIB, Deployment
from headway.capacity.device_table import Device
from headway.capacity.model_shape import ModelShape
from headway.capacity.quantization_table import Quantization, quantizations

UTILIZATION: Final = 0.92  # vLLM's default share of the card
CACHE_DTYPES: Final = {"auto": 2.0, "bfloat16": 2.0, "float16": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}
_LARGE: Final = 70 * GIB
_HUGE: Final = 160 * GIB


@dataclass(frozen=True, slots=True)
class Placement:
    """How a model is put on cards. `quantization` None = the checkpoint as it is stored; `max_num_seqs` None = vLLM's default."""

    quantization: Quantization | None = None
    utilization: float = UTILIZATION
    ranks: int = 1
    cache_number_bytes: float = 2.0
    dtype_bytes: int = 2
    max_num_seqs: int | None = None


def on_device(shape: ModelShape, device: Device, placement: Placement) -> Deployment:
    """Defaults that depend on the card are those of `vllm serve`: step budget 2,048 tokens, 8,192 from 70 GiB and 16,384 from 160 GiB
    on; 256 sequences, 1,024 on cards of 70 GiB that are no A100."""
    large = device.memory_bytes >= _LARGE
    rows = 1024 if large and not device.name.startswith("a100") else 256
    return Deployment(
        shape, "vllm", placed_weights(shape, placement), int(device.memory_bytes * placement.utilization), dtype_bytes=placement.dtype_bytes,
        cache_number_bytes=placement.cache_number_bytes, step_tokens=16384 if device.memory_bytes >= _HUGE else 8192 if large else 2048,
        rows=placement.max_num_seqs or rows, ranks=placement.ranks,
    )  # fmt: skip


def placed_weights(shape: ModelShape, placement: Placement) -> int:
    """Bytes on all cards together. A quantized checkpoint takes what it takes on disk; plain weights are converted to the dtype."""
    if placement.quantization is not None and placement.quantization.bits < 16:
        return placement.quantization.weight_bytes(shape)
    if placement.quantization is None and shape.quantization is not None and shape.stored_bytes is not None:
        return shape.stored_bytes
    return shape.parameters * placement.dtype_bytes


def device_roofs(device: Device, placement: Placement) -> Roofs:
    """Of the data sheet. Formats without units of their own on the card are computed in 16 bit."""
    wanted = placement.quantization.arithmetic if placement.quantization is not None else "bf16"
    speeds = (device.arithmetic(kind) for kind in (wanted, "bf16", "fp16"))
    return Roofs(device.bandwidth, next(speed for speed in speeds if speed), "data sheet")


def device_workload(shape: ModelShape, placement: Placement) -> Workload:
    """Bits per weight are an average over the checkpoint."""
    bits = 8 * placed_weights(shape, placement) / shape.parameters
    return Workload(shape, bits, placement.cache_number_bytes, placement.ranks)


def vllm_formats(device: Device) -> tuple[Quantization, ...]:
    """Formats that vLLM serves on the card, best accuracy first (the order of the table)."""
    return tuple(each for each in quantizations().values() if "vllm" in each.engines and each.refused_by(device) is None)
