"""What the options of `headway plan` ask, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.device_table import Device, find_device
from headway.capacity.on_device import CACHE_DTYPES, UTILIZATION, Placement
from headway.capacity.on_host import DTYPE_BYTES, auto_dtype_bytes
from headway.capacity.quantity import parse_bandwidth, parse_bytes, parse_flops
from headway.capacity.quantization_table import Quantization, quantizations
from headway.errors import ConfigError, NotBuiltError
from headway.host.instruction_set import instruction_set

THIS_MACHINE: Final = ("cpu", "host", "this")
_MOST_TOKENS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Question:
    """`device` None = this machine. `bandwidth` and `flops` replace those of the device; per second."""

    device: Device | None = None
    context: int | None = None
    sequences: int | None = None
    bandwidth: float | None = None
    flops: float | None = None
    ranks: int | None = None
    dtype: str = "auto"
    cache_dtype: str = "auto"
    utilization: float | None = None
    quantization: Quantization | None = None

    @property
    def dtype_bytes(self) -> int:
        """Of activations and unquantized weights: 16 bit on cards, on this machine what its processor is fast in."""
        automatic = 2 if self.device is not None else auto_dtype_bytes(instruction_set())
        return DTYPE_BYTES.get(self.dtype, automatic)

    @property
    def placement(self) -> Placement:
        """On cards."""
        cache = float(self.dtype_bytes) if self.cache_dtype == "auto" else CACHE_DTYPES[self.cache_dtype]
        return Placement(self.quantization, self.utilization or UTILIZATION, self.ranks or 1, cache, self.dtype_bytes, self.sequences)


def question(
    *, device: str | None, memory: str | None, max_model_len: int | None, concurrency: int | None, bandwidth: str | None, flops: str | None,
    tensor_parallel_size: int | None, dtype: str, kv_cache_dtype: str, gpu_memory_utilization: float | None, quantization: str | None,
) -> Question:  # fmt: skip
    """Raises ConfigError, NotBuiltError for what Headway's engine does not have on this machine."""
    speed = None if bandwidth is None else parse_bandwidth(bandwidth, "bandwidth")
    operations = None if flops is None else parse_flops(flops, "flops")
    card = _card(device, memory, speed, operations)
    _positive("max_model_len", max_model_len, _MOST_TOKENS)
    _positive("concurrency", concurrency, 1 << 20)
    _positive("tensor_parallel_size", tensor_parallel_size, 1024)
    if gpu_memory_utilization is not None and not 0 < gpu_memory_utilization <= 1:
        raise ConfigError(f"--gpu-memory-utilization must be over 0 and at most 1, found {gpu_memory_utilization}", param="gpu_memory_utilization")
    form = None
    if quantization is not None:
        form = quantizations().get(quantization)
        if form is None:
            raise ConfigError(f"--quantization {quantization!r:.40}: known are {', '.join(quantizations())}", param="quantization")
    if card is None:
        _check_this_machine(tensor_parallel_size, kv_cache_dtype, form)
    return Question(
        card, max_model_len, concurrency, speed, operations, tensor_parallel_size, dtype, kv_cache_dtype, gpu_memory_utilization, form
    )


def _card(device: str | None, memory: str | None, bandwidth: float | None, flops: float | None) -> Device | None:
    if memory is not None:
        if device is not None:
            raise ConfigError("--memory describes a device of its own; --device names one of the table: give one of them", param="memory")
        if bandwidth is None or flops is None:
            raise ConfigError("--memory describes a device: give --bandwidth and --flops as well", param="memory")
        return Device(
            "custom", f"a device of {memory}", "other", parse_bytes(memory, "memory"), bandwidth, {"bf16": flops, "fp16": flops}, "unknown", "given"
        )
    return None if device is None or device.lower() in THIS_MACHINE else find_device(device)


def _positive(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise ConfigError(f"--{name.replace('_', '-')} must be from 1 to {most}, found {value}", param=name)


def _check_this_machine(ranks: int | None, cache_dtype: str, form: Quantization | None) -> None:
    if ranks is not None and ranks > 1:
        raise NotBuiltError(
            f"--tensor-parallel-size {ranks}: Headway's engine runs on one machine's CPUs", param="tensor_parallel_size",
            fix="Name a --device to plan for several cards.",
        )  # fmt: skip
    if CACHE_DTYPES[cache_dtype] < 2:
        raise NotBuiltError(
            f"--kv-cache-dtype {cache_dtype}: Headway's engine keeps its cache in the dtype of the model, or in int8", param="kv_cache_dtype",
            fix="Leave it out, or name a --device.",
        )  # fmt: skip
    if form is not None and "headway" not in form.engines:
        raise NotBuiltError(
            f"--quantization {form.name}: a plan for this machine takes the weights as the checkpoint stores them", param="quantization",
            fix="Leave it out, or name a --device.",
        )  # fmt: skip
