"""A learned number for every head and distance, added to attention scores (T5, arXiv 1910.10683, section 2.1; MPNet)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def distance_buckets(length: int, buckets: int, farthest: int) -> torch.Tensor:
    """int64 [L, L]: the bucket of key j as seen from query i. Half of the buckets are for keys behind; of each half, the
    first half is one bucket for each distance, the rest grows logarithmically up to `farthest`."""
    places = torch.arange(length)
    behind = places[:, None] - places  # how far the key is behind the query
    half = buckets // 2
    exact = half // 2
    far = behind.abs()
    grown = exact + (torch.log(far.float() / exact) / math.log(farthest / exact) * (half - exact)).clamp(max=half).long()
    return torch.where(behind < 0, half, 0) + torch.where(far < exact, far, grown.clamp(max=half - 1))


class DistanceBias:
    """The same for all layers. Grows to the longest row that was asked for."""

    __slots__ = ("_farthest", "_table", "weight")

    weight: torch.Tensor

    def __init__(self, farthest: int):
        self._farthest = farthest
        self._table: torch.Tensor | None = None

    def load(self, weight: torch.Tensor, bias: None = None) -> None:
        """`weight` [buckets, heads]."""
        self.weight = weight

    def reaching(self, length: int) -> torch.Tensor:
        """[heads, at least L, at least L] in the dtype of the weight."""
        if self._table is None or self._table.shape[1] < length:
            size = max(16, 1 << (length - 1).bit_length())
            buckets = distance_buckets(size, self.weight.shape[0], self._farthest)
            self._table = F.embedding(buckets, self.weight).permute(2, 0, 1).contiguous()
        return self._table
