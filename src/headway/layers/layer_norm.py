"""LayerNorm over the last dimension, and the same for every attention head on its own."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels


class LayerNorm:
    """(x - mean(x)) / deviation(x) * weight + bias."""

    __slots__ = ("_add", "_epsilon", "_norm", "bias", "weight")

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, kernels: Kernels, epsilon: float):
        self._norm, self._add = kernels.layer_norm, kernels.add_scaled
        self._epsilon = epsilon

    def load(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        """`weight` and `bias` [n]."""
        self.weight, self.bias = weight, bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._norm(x, self.weight, self.bias, self._epsilon)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
        """residual + scale * the norm of x."""
        return self._add(residual, self(x), scale)


class HeadLayerNorm:
    """LayerNorm without a bias of every query head and every key head, each with a weight of its own, in place."""

    __slots__ = ("_epsilon", "_heads", "_norm", "weight")

    weight: torch.Tensor

    def __init__(self, kernels: Kernels, epsilon: float, num_heads: int, num_kv_heads: int):
        self._norm = kernels.layer_norm_heads
        self._epsilon = epsilon
        self._heads = num_heads + num_kv_heads

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [heads * D]: those of the query heads, then those of the key heads."""
        self.weight = weight.view(self._heads, -1)

    def __call__(self, rows: torch.Tensor) -> None:
        """rows [T, query heads + key heads, D], changed in place."""
        self._norm(rows, self.weight, self._epsilon)
