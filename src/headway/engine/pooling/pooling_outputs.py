"""What reading prompts gives back; names as in vLLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

T = TypeVar("T")


@dataclass(slots=True)
class PoolingOutput:
    """`data` float32; its shape is that of the task (`readout`)."""

    data: torch.Tensor


@dataclass(slots=True)
class EmbeddingOutput:
    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclass(slots=True)
class ClassificationOutput:
    """`probs` in the order of the model's labels."""

    probs: list[float]

    @property
    def num_classes(self) -> int:
        return len(self.probs)


@dataclass(slots=True)
class ScoringOutput:
    """Cosine of two vectors, -1 to 1."""

    score: float


@dataclass(slots=True)
class PoolingRequestOutput(Generic[T]):
    """`error`: why the prompt could not be read; `outputs` is None then."""

    request_id: str
    outputs: T | None
    prompt_token_ids: list[int]
    num_cached_tokens: int = 0
    finished: bool = True
    error: str | None = None
