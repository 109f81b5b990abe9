"""Modules of which every rank of a stage has a part, and whose results are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headway.kernels.interface import Activation, PackedLinear
from headway.layers.embedding import Embedding
from headway.layers.moe import MixtureOfExperts

Summed = Callable[[torch.Tensor], torch.Tensor]  # of the ranks of a stage


class SummedLinear:
    """A matrix of which every rank has some columns. What a residual brings, the first rank adds; its bias it alone has."""

    __slots__ = ("_adds", "_own", "_summed")

    def __init__(self, own: PackedLinear, summed: Summed, *, adds: bool):
        self._own = own
        self._summed = summed
        self._adds = adds

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._summed(self._own(x))

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self._summed(self._own.widened(x))

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        """An activation of a sum is not the sum of activations, and no architecture has one after such a matrix."""
        raise TypeError("an activation after columns that are divided")

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._summed(self._own.add_to(residual, x) if self._adds else self._own(x))


class DividedEmbedding:
    """A table of which every rank has the rows of some tokens; those of others count as zeros."""

    __slots__ = ("_own", "_rows", "_summed")

    def __init__(self, own: Embedding, rows: range, summed: Summed):
        """`rows`: the token ids whose rows `own` has."""
        self._own = own
        self._rows = rows
        self._summed = summed

    @property
    def weight(self) -> torch.Tensor:
        return self._own.weight

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        self._own.load(weight)

    def __call__(self, token_ids: torch.Tensor) -> torch.Tensor:
        local = token_ids - self._rows.start
        foreign = (local < 0) | (local >= len(self._rows))
        found = self._own(local.masked_fill(foreign, 0))
        return self._summed(found.masked_fill_(foreign[:, None], 0))


class SummedExperts:
    """A mixture of which every rank has a part of every expert."""

    __slots__ = ("_adds", "_own", "_summed")

    def __init__(self, own: MixtureOfExperts, summed: Summed, *, adds: bool):
        self._own = own
        self._summed = summed
        self._adds = adds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self._summed(self._own(x, residual if self._adds else torch.zeros_like(residual)))


class SummedRowNorm:
    """RMSNorm of all query heads of a token together, and of all its key heads together, of which every rank has some, in place."""

    __slots__ = ("_epsilon", "_heads", "_repeats", "_summed", "_tensor", "weights")

    weights: tuple[torch.Tensor, ...]

    def __init__(self, epsilon: float, heads: tuple[int, int], tensor: int, repeats: int, summed: Summed):
        """`heads`: query and key heads of this rank. Each key head is on `repeats` of the `tensor` ranks."""
        self._epsilon = epsilon
        self._heads = list(heads)
        self._tensor = tensor
        self._repeats = torch.tensor([1.0, float(repeats)])
        self._summed = summed

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [(query heads + key heads) * D]: that of the queries, then that of the keys."""
        size = weight.shape[0] // sum(self._heads)
        self.weights = torch.split(weight.view(-1, size), self._heads)

    def __call__(self, rows: torch.Tensor) -> None:
        """rows [T, query heads + key heads, D], changed in place."""
        parts = torch.split(rows, self._heads, 1)
        squares = self._summed(torch.stack([part.float().square().sum((1, 2)) for part in parts], 1)) / self._repeats
        counts = [heads * self._tensor / repeats for heads, repeats in zip(self._heads, self._repeats.tolist(), strict=True)]
        for index, (part, weight) in enumerate(zip(parts, self.weights, strict=True)):
            means = squares[:, index] / (counts[index] * part.shape[2])
            scale = torch.rsqrt(means + self._epsilon)[:, None, None]
            part.copy_((part.float() * scale).to(part.dtype) * weight)
