"""The bound that memory sets: a decode step cannot be faster than its bytes take to arrive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """Bytes one decode step reads: the weights once for the whole batch, the keys and values of every context."""

    weight_bytes: int
    kv_bytes: int
    sequences: int

    @property
    def nbytes(self) -> int:
        return self.weight_bytes + self.kv_bytes

    def seconds(self, bytes_per_second: float) -> float:
        """Least duration at a memory bandwidth in bytes per second."""
        return self.nbytes / bytes_per_second

    def tokens_per_second(self, bytes_per_second: float) -> float:
        """Most tokens per second over the batch, one per sequence and step."""
        return self.sequences / self.seconds(bytes_per_second)


def decode_step(weight_bytes: int, kv_bytes_per_token: int, context_tokens: list[int]) -> DecodeStep:
    """The step of a batch with these context lengths (tokens), shared prefixes counted once per sequence."""
    return DecodeStep(weight_bytes, kv_bytes_per_token * sum(context_tokens), len(context_tokens))
