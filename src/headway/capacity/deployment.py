"""Deployment: a model on devices under one engine, and what it needs there for a context and a number of sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from headway.capacity.activations import HEADWAY, VLLM, Step, activation_bytes
from headway.capacity.model_shape import ModelShape
from headway.capacity.process_memory import process_bytes
from headway.capacity.weight_bytes import held_weight_bytes

Engine = Literal["headway", "runtime", "vllm"]
GIB: Final = 1 << 30
CONTEXT_BYTES: Final = GIB // 2  # of a GPU process inside the cap: driver context, collective buffers (the doctor's O11: 0.5 to 1 GiB)


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes on one device (on the host, of one process)."""

    weights: int
    cache: int
    activations: int
    process: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.activations + self.process


@dataclass(frozen=True, slots=True)
class Deployment:
    """`weights`: bytes of all weights in memory, on all `ranks` together. `dtype_bytes` of activations, `cache_number_bytes` of one
    number of the cache, `step_tokens` and `rows`: the largest step. `budget` is what one device has for all of it.
    """

    shape: ModelShape
    engine: Engine
    weights: int
    budget: int
    dtype_bytes: int = 2
    cache_number_bytes: float = 2
    block_size: int = 16
    step_tokens: int = 2048
    rows: int = 256
    ranks: int = 1

    def cache_bytes(self, context: int, sequences: int) -> int:
        """Whole blocks of every sequence, and the null block. Only vLLM lets layers with a window keep no more than it."""
        if not self.shape.kv and not self.shape.state_numbers:
            return 0
        blocks = -(-context // self.block_size)
        one = self.shape.cache_numbers(blocks * self.block_size, self.ranks, windows=self.engine == "vllm")
        null = self.block_size * self.shape.numbers_per_token(self.ranks)
        return round((sequences * one + null) * self.cache_number_bytes)

    def need(self, context: int, sequences: int) -> Need:
        """Of `sequences` at once, each `context` tokens long. Never shrinks as either grows. vLLM reserves for the largest step that its
        flags allow, whatever is asked of it; Headway takes what a step takes."""
        step = Step(self.step_tokens, self.rows, context)
        if self.engine != "vllm":
            step = Step(min(self.step_tokens, context * sequences), min(self.rows, sequences), context)
        arithmetic = VLLM if self.engine == "vllm" else HEADWAY
        return Need(
            -(-self.weights // self.ranks),
            self.cache_bytes(context, sequences),
            activation_bytes(self.shape, step, self.dtype_bytes, arithmetic, self.ranks),
            CONTEXT_BYTES if self.engine == "vllm" else process_bytes(self.shape.vocabulary, runtime=self.engine == "runtime"),
        )

    def fits(self, context: int, sequences: int) -> bool:
        """Whether the budget holds it."""
        return self.need(context, sequences).total <= self.budget

    def largest_context(self, sequences: int = 1) -> int:
        """Tokens, whole blocks unless the model's own context ends earlier; 0 when not even one block fits."""
        most = self.shape.context_length or 1 << 24
        if self.fits(most, sequences):
            return most
        blocks = _largest(lambda count: self.fits(count * self.block_size, sequences), most // self.block_size)
        return blocks * self.block_size

    def largest_concurrency(self, context: int) -> int:
        """Sequences of `context` tokens at once; 0 when one does not fit. A model that keeps nothing of them has no such bound: then the
        rows of a step, if they fit."""
        if not self.shape.kv and not self.shape.state_numbers:
            return self.rows if self.fits(context, self.rows) else 0
        return _largest(lambda count: self.fits(context, count), 1 << 20)


def _largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest count up to `most` for which a property holds that holds for everything smaller; 0 when for none."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def headway_weights(shape: ModelShape, dtype_bytes: int) -> int:
    """Bytes of the weights as Headway's engine keeps them: in one dtype, whatever is stored, but for what stays integers; a tied head is
    packed beside its table."""
    return held_weight_bytes(shape.parameters, shape.vocabulary * shape.hidden if shape.tied else 0, dtype_bytes, shape.integers)
