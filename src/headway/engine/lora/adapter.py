"""Adapter: one LoRA adapter as it was when it was read. Requests hold it, so it outlives its name."""

from __future__ import annotations

from headway.engine.lora.lora_request import LoRARequest
from headway.models.lora.adapter_folder import AdapterWeights


class Adapter:
    """`digest` names what it computes, in prefix caches too. `weights` is None while others have its place in memory; they are read again
    when it runs next (`AdapterRegistry.weights`)."""

    __slots__ = ("digest", "request", "weights")

    def __init__(self, request: LoRARequest, weights: AdapterWeights):
        self.request = request
        self.digest = weights.digest
        self.weights: AdapterWeights | None = weights

    @property
    def name(self) -> str:
        return self.request.lora_name
