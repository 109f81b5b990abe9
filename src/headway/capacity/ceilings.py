"""The speeds that no implementation can exceed: what memory delivers and what the arithmetic units multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.capacity.model_shape import ModelShape
from headway.capacity.roofline import DecodeStep

Origin = Literal["measured", "given", "data sheet"]


@dataclass(frozen=True, slots=True)
class Roofs:
    """Of one device: `bandwidth` in bytes per second, `flops` in operations per second. The last cache holds `cache_bytes`, which
    arrive at `cache_bandwidth` once they are there; 0 bytes where it does not matter."""

    bandwidth: float
    flops: float
    origin: Origin
    cache_bytes: int = 0
    cache_bandwidth: float = 0.0

    def read_seconds(self, nbytes: float) -> float:
        """Least time to read `nbytes` over and over: the part that the cache can keep comes from there."""
        kept = min(nbytes, self.cache_bytes)
        fast = kept / self.cache_bandwidth if self.cache_bandwidth > self.bandwidth else kept / self.bandwidth
        return (nbytes - kept) / self.bandwidth + fast


@dataclass(frozen=True, slots=True)
class Workload:
    """A model as it runs: bits per weight in memory, bytes per number of the cache, over `ranks` devices."""

    shape: ModelShape
    weight_bits: float
    cache_number_bytes: float
    ranks: int = 1

    def decode_step(self, context: int, sequences: int) -> DecodeStep:
        """What one device reads: its share of the weights once, keys and values of every sequence. Of experts, only as many
        as one token needs: several tokens need more."""
        cache = self.shape.cache_numbers(context, self.ranks) * self.cache_number_bytes * sequences
        return DecodeStep(int(self.shape.active * self.weight_bits / 8 / self.ranks), int(cache), sequences)


def decode_ceiling(work: Workload, roofs: Roofs, context: int, sequences: int) -> float:
    """Tokens per second over all `sequences`, each in a context of `context` tokens: T = sequences / max(bytes / bandwidth,
    2 x active parameters x sequences / operations per second)."""
    step = work.decode_step(context, sequences)
    arithmetic = 2.0 * work.shape.active * sequences / work.ranks / roofs.flops
    return sequences / max(roofs.read_seconds(step.nbytes), arithmetic)


def prefill_ceiling(work: Workload, roofs: Roofs, prompt: int) -> float:
    """Prompt tokens per second for prompts of `prompt` tokens of which nothing is in the prefix cache: operations per second over
    2 x parameters and the products of attention, of which half are needed under a causal mask. The output head sees only the
    last token of a prompt."""
    shape = work.shape
    head = shape.head or (shape.vocabulary * shape.hidden if shape.tied else 0)
    seen = sum(layer.count * min(prompt / 2, layer.window or prompt) for layer in shape.kv)
    attention = 4.0 * seen * shape.heads * shape.head_dim
    operations = 2.0 * max(1, shape.active - head) + attention
    return roofs.flops * work.ranks / operations


def knee(work: Workload, roofs: Roofs) -> float:
    """Sequences at once from which on arithmetic is the bound and not the reading of weights, contexts aside."""
    return roofs.flops / roofs.bandwidth * (work.weight_bits / 8) / 2
