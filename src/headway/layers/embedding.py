"""Token embedding."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels


class Embedding:
    """Rows of a table, times `scale` where the architecture has one.

    `rounded`: the scale is rounded to the dtype of the table first, as Gemma was trained: 25.298 becomes 25.25 in bfloat16.
    """

    __slots__ = ("_embed", "_rounded", "_scale", "weight")

    weight: torch.Tensor

    def __init__(self, kernels: Kernels, scale: float = 1.0, *, rounded: bool = False):
        self._embed = kernels.embed
        self._scale = scale
        self._rounded = rounded

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [vocabulary, hidden]."""
        self.weight = weight
        if self._rounded:
            self._scale = torch.tensor(self._scale, dtype=weight.dtype).item()

    def __call__(self, token_ids: torch.Tensor) -> torch.Tensor:
        """int64 [T] -> [T, hidden]. Raises IndexError for ids outside the table."""
        return self._embed(self.weight, token_ids, self._scale)
