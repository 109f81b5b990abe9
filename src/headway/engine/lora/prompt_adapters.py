"""What `LLM` takes as `lora_request`: nothing, one adapter for all prompts, or an entry for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.engine.lora.adapter import Adapter
from headway.engine.lora.lora_request import LoRARequest
from headway.engine.lora.registry import AdapterRegistry, enabled
from headway.errors import RequestError

LoRARequests = LoRARequest | Sequence[LoRARequest | None] | None


def prompt_adapters(given: LoRARequests, prompts: int, registry: AdapterRegistry | None) -> list[Adapter | None]:
    """One for each prompt; adapters that are not known yet are read. Raises RequestError, AdapterError."""
    many: list[Any] = list(given) if isinstance(given, list | tuple) else [given] * prompts
    if len(many) != prompts:
        raise RequestError(f"lora_request has {len(many)} entries for {prompts} prompts", param="lora_request")
    for each in many:
        if each is not None and not isinstance(each, LoRARequest):
            raise RequestError(f"lora_request must be LoRARequest, got {type(each).__name__}", param="lora_request")
    distinct = {each.lora_int_id: each for each in many if each is not None}
    known = {number: enabled(registry).add(each) for number, each in distinct.items()}
    return [None if each is None else known[each.lora_int_id] for each in many]
