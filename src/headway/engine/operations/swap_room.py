"""Whether a model has room beside the one that runs."""

from __future__ import annotations

from headway.capacity.byte_text import byte_text
from headway.engine.planned_model import PlannedModel
from headway.errors import CapacityError
from headway.host.memory_budget import memory_budget


def require_room(planned: PlannedModel) -> None:
    """Before its weights are loaded. The whole KV cache counts, though it is committed as it is written. Raises CapacityError
    (`does_not_fit`) with the numbers."""
    memory = memory_budget()
    cache = planned.expected.kv_bytes
    needed = planned.weight_bytes + cache
    if needed > memory.available:
        raise CapacityError(
            f"beside the model that runs, the new one needs {byte_text(needed)} (weights {byte_text(planned.weight_bytes)}, KV cache {byte_text(cache)}),"
            f" and {byte_text(memory.available)} are available (limit {byte_text(memory.limit)} of {memory.limited_by})",
            param="model", fix="Give a smaller kv_cache_memory_bytes, a quantization, or a smaller model.",
        )  # fmt: skip
