"""The pointer: `<q(decide), k(option end)> / sqrt(d)`, both linear with a bias, float32."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F


def head_shapes(hidden: int, head_dim: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of its tensors."""
    return {"q.weight": (head_dim, hidden), "q.bias": (head_dim,), "k.weight": (head_dim, hidden), "k.bias": (head_dim,)}


@dataclass(frozen=True, slots=True)
class PointerHead:
    """`tensors` as in `head_shapes`, float32."""

    tensors: Mapping[str, torch.Tensor]

    def logits(self, ends: torch.Tensor, decide: torch.Tensor) -> torch.Tensor:
        """ends [options, hidden], decide [hidden], float32 -> [options], before any temperature."""
        t = self.tensors
        query = F.linear(decide, t["q.weight"], t["q.bias"])
        return F.linear(ends, t["k.weight"], t["k.bias"]) @ query / math.sqrt(len(query))

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())
