"""RMSNorm over the last dimension, and the same for every attention head on its own."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels


class RMSNorm:
    """x / rms(x) * weight. A float32 weight makes the product float32 before it is rounded (Gemma)."""

    __slots__ = ("_add", "_epsilon", "_norm", "weight")

    weight: torch.Tensor

    def __init__(self, kernels: Kernels, epsilon: float):
        self._norm, self._add = kernels.rms_norm, kernels.add_rms_norm
        self._epsilon = epsilon

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [n], in the dtype of the activations or in float32."""
        self.weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._norm(x, self.weight, self._epsilon)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
        """residual + scale * the norm of x."""
        return self._add(residual, x, self.weight, self._epsilon, scale)


class HeadNorm:
    """RMSNorm of every query head with one weight and of every key head with another, in one call, in place."""

    __slots__ = ("_epsilon", "_heads", "_norm", "weight")

    weight: torch.Tensor

    def __init__(self, kernels: Kernels, epsilon: float, num_heads: int, num_kv_heads: int):
        self._norm = kernels.norm_heads
        self._epsilon = epsilon
        self._heads = (num_heads, num_kv_heads)

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [2 * D]: that of the queries, then that of the keys."""
        parts = zip(weight.chunk(2), self._heads, strict=True)
        self.weight = torch.cat([part.expand(count, -1) for part, count in parts])

    def __call__(self, rows: torch.Tensor) -> None:
        """rows [T, query heads + key heads, D], changed in place."""
        self._norm(rows, self.weight, self._epsilon)


class RowNorm:
    """RMSNorm of all query heads of a token together, and of all its key heads together, in place (OLMo 2)."""

    __slots__ = ("_epsilon", "_heads", "_norm", "weights")

    weights: tuple[torch.Tensor, ...]

    def __init__(self, kernels: Kernels, epsilon: float, num_heads: int, num_kv_heads: int):
        self._norm = kernels.norm_heads
        self._epsilon = epsilon
        self._heads = [num_heads, num_kv_heads]

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [(query heads + key heads) * D]: that of the queries, then that of the keys."""
        size = weight.shape[0] // sum(self._heads)
        self.weights = torch.split(weight[None], [heads * size for heads in self._heads], 1)

    def __call__(self, rows: torch.Tensor) -> None:
        """rows [T, query heads + key heads, D], changed in place."""
        for part, weight in zip(torch.split(rows, self._heads, 1), self.weights, strict=True):
            self._norm(part.view(part.shape[0], 1, -1), weight, self._epsilon)
