"""What the start of `vllm serve` would say about memory on the card that its file names: the plan's arithmetic, in vLLM's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.model_cards import card_of_path
from headway.capacity.card_shape import card_shape
from headway.capacity.device_table import Device, find_device
from headway.capacity.model_shape import ModelShape
from headway.capacity.model_table import known_model
from headway.capacity.on_device import CACHE_DTYPES, UTILIZATION, Placement, on_device
from headway.capacity.quantization_table import quantizations
from headway.capacity.tensor_split import split_obstacle
from headway.doctor.collect.model import model_on_disk
from headway.errors import ArtifactError, CapacityError, ConfigError

_GIB: Final = 2**30
_LABELS: Final = r"(?:nvidia\.com/gpu\.product|cloud\.google\.com/gke-accelerator|k8s\.amazonaws\.com/accelerator|gpu\.nvidia\.com/model)"
# how files name a card: a label of the node, an expression about it, a line of a batch script
_NAMES: Final = (
    re.compile(rf"(?<![^\s{{,\"'])[\"']?{_LABELS}[\"']?\s*:\s*[\"']?(?P<name>[A-Za-z][\w.\-]+)"),
    re.compile(rf"key:\s*[\"']?{_LABELS}[\s\S]{{0,160}}?values:\s*(?:\[\s*|\n\s*-\s*)[\"']?(?P<name>[A-Za-z][\w.\-]+)"),
    re.compile(r"(?m)^#SBATCH\s+--(?:gres=gpu|gpus(?:-per-\w+)?=?):?(?P<name>[A-Za-z][\w\-]+):(?P<count>\d{1,2})"),
)
_LIMIT: Final = re.compile(r"(?<![^\s{,\"'])[\"']?nvidia\.com/gpu[\"']?\s*:\s*[\"']?(?P<count>\d{1,2})\b")
_DTYPE_BYTES: Final = {"float32": 4, "float": 4}


@dataclass(frozen=True, slots=True)
class NamedCards:
    """`count` cards of one kind."""

    device: Device
    count: int

    @property
    def part(self) -> dict[str, Any]:
        """Of a context."""
        card = {"name": self.device.title, "memory_gib": round(self.device.memory_bytes / _GIB, 2), "capability": self.device.capability}
        return {"host": {"gpus": [{"index": index, **card} for index in range(self.count)]}}


def named_cards(text: str) -> NamedCards | None:
    """None when the file names no card. Raises ConfigError (`unknown_device`) for one that the table does not have."""
    found = next((match for pattern in _NAMES if (match := pattern.search(text))), None)
    if found is None:
        return None
    limit = _LIMIT.search(text)
    count = found.groupdict().get("count") or (limit["count"] if limit else "1")
    return NamedCards(find_device(found["name"]), max(1, int(count)))


def lines_on_card(flags: Mapping[str, str], cards: NamedCards) -> list[str]:
    """The lines about memory that a start with these `flags` (underscores, as typed) would end with; [] when it would go well, or
    when the model is not known here. Each says that it is planned, not seen."""
    shape = _shape(flags.get("model", ""))
    try:
        placement = _placement(flags)
        if shape is None or placement is None or split_obstacle(shape, placement.ranks) is not None:
            return []
        return _lines(shape, cards.device, placement, int(flags.get("max_model_len") or shape.context_length or 0))
    except (ValueError, ConfigError, CapacityError):
        return []  # flags that are no numbers, and lengths beyond the model's, are judged elsewhere


def _lines(shape: ModelShape, device: Device, placement: Placement, length: int) -> list[str]:
    deployment = on_device(shape, device, placement)
    need = deployment.need(length, 1)
    left = deployment.budget - (need.total - need.cache)
    if not need.cache or need.cache <= left:
        return []
    start = f"planned for {device.title}: "
    lines = [f"{start}Model loading took {need.weights / _GIB:.2f} GiB memory", f"{start}Available KV cache memory: {left / _GIB:.2f} GiB"]
    longest = deployment.largest_context()
    if left <= 0 or not longest:
        return [*lines, f"{start}ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."]
    return [
        *lines,
        f"{start}ValueError: To serve at least one request with the models's max seq len ({length}), ({need.cache / _GIB:.2f} GiB KV cache is needed, which is larger than the available"
        f" KV cache memory ({left / _GIB:.2f} GiB). Based on the available memory, the estimated maximum model length is {longest}.",
    ]


def _placement(flags: Mapping[str, str]) -> Placement | None:
    """None for a start over several stages, whose memory is not planned here. Raises ValueError for what is no number."""
    if flags.get("pipeline_parallel_size", "1") != "1":
        return None
    rows = flags.get("max_num_seqs")
    return Placement(
        quantization=quantizations().get(flags.get("quantization", "")),
        utilization=float(flags.get("gpu_memory_utilization", UTILIZATION)),
        ranks=int(flags.get("tensor_parallel_size", "1")),
        cache_number_bytes=CACHE_DTYPES.get(flags.get("kv_cache_dtype", "auto"), 2.0),
        dtype_bytes=_DTYPE_BYTES.get(flags.get("dtype", ""), 2),
        max_num_seqs=int(rows) if rows else None,
    )


def _shape(model: str) -> ModelShape | None:
    """Of its files when they are here, else of the table of common models. None without either, or with damaged files."""
    path = model_on_disk(model) if model else None
    try:
        if path is not None:
            return card_shape(card_of_path(path, model))
    except (ArtifactError, CapacityError, OSError):
        return None
    known = known_model(model) if model else None
    return None if known is None else known.shape
