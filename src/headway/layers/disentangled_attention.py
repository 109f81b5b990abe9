"""Attention that scores content and distance apart (DeBERTa, He et al., arXiv 2006.03654; version 2 and 3 as in 2111.09543).

The score of query i and key j is q_i k_j + q_i K[d] + k_j Q[d], where d is the bucket of the distance i - j, and K and Q are
projections of a table of distances. Those do not change with the text, so they are computed once, at load. For a row of
length L there are 2L - 1 distances; a product with as many columns holds every wanted score, and a view of it with rows
one shorter than they are puts each at its place: no gather.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F

from headway.kernels.interface import Kernels
from headway.kernels.row_groups import RowGroup
from headway.layers.linear import Linear
from headway.layers.residual_projection import ResidualProjection
from headway.layers.row_attention import RowStep

_SCORES: Final = 1 << 23  # at once, of all heads of some rows


@dataclass(frozen=True, slots=True)
class Disentangled:
    """`span`: distances from -span to span - 1 have a row of the table each, 2 * span in all. With `buckets` the far ones
    share rows, up to `farthest`. `shared`: K and Q are projected as keys and queries are, else by matrices of their own."""

    span: int
    farthest: int
    buckets: int
    content_to_position: bool
    position_to_content: bool
    shared: bool
    normalized: bool  # the table goes through a LayerNorm first

    @property
    def terms(self) -> int:
        """Of a score; it is divided by the root of this times the size of a head."""
        return 1 + self.content_to_position + self.position_to_content


def distance_rows(length: int, shape: Disentangled) -> torch.Tensor:
    """int64 [2L - 1]: the row of the table for the distances L - 1, L - 2, ..., 1 - L."""
    distances = torch.arange(length - 1, -length, -1)
    if shape.buckets:
        middle = shape.buckets // 2
        # In float32, in this order, as the models were trained: the ceiling decides the bucket.
        spread = torch.log(distances.abs().clamp(min=1) / middle) / torch.log(torch.tensor((shape.farthest - 1) / middle))
        far = torch.ceil(spread * (middle - 1)) + middle
        distances = torch.where(distances.abs() <= middle, distances, (far * distances.sign()).long())
    return (distances + shape.span).clamp(0, 2 * shape.span - 1)


class DisentangledAttention:
    """residual + output(attention(x)). `prepare` it once all weights are there."""

    __slots__ = ("_heads", "_keys", "_queries", "_scale", "_shape", "output", "position_key", "position_query", "qkv")

    def __init__(self, kernels: Kernels, heads: int, head_dim: int, shape: Disentangled):
        self.qkv = Linear(kernels)
        self.output = ResidualProjection(kernels, None)
        self.position_key = Linear(kernels)
        self.position_query = Linear(kernels)
        self._heads, self._shape = heads, shape
        self._scale = 1 / math.sqrt(head_dim * shape.terms)
        self._keys: torch.Tensor | None = None  # [H, 2 * span, D], times the scale
        self._queries: torch.Tensor | None = None

    def prepare(self, table: torch.Tensor) -> None:
        """`table` [2 * span, hidden]: embeddings of the distances, normalised."""
        shape = self._shape
        if shape.shared:
            query, key, _ = self.qkv(table).chunk(3, -1)
        if shape.content_to_position:
            self._keys = self._by_head(key if shape.shared else self.position_key(table))
        if shape.position_to_content:
            self._queries = self._by_head(query if shape.shared else self.position_query(table))
        del self.position_key, self.position_query

    def _by_head(self, projected: torch.Tensor) -> torch.Tensor:
        return projected.view(len(projected), self._heads, -1).transpose(0, 1).mul(self._scale).contiguous()

    def __call__(self, x: torch.Tensor, residual: torch.Tensor, step: RowStep) -> torch.Tensor:
        """x and residual [T, hidden] -> the new residual."""
        qkv = self.qkv(x).view(x.shape[0], 3 * self._heads, -1)
        mixed = [self._attend(qkv[part.tokens], part) for group in step.groups for part in self._parts(group)]
        return self.output(residual, mixed[0] if len(mixed) == 1 else torch.cat(mixed))

    def _parts(self, group: RowGroup) -> Sequence[RowGroup]:
        """The group in pieces whose scores are not too many at once."""
        most = max(1, _SCORES // (self._heads * group.length**2))
        return [
            RowGroup(group.start + first * group.length, min(most, group.rows - first), group.length)
            for first in range(0, group.rows, most)
        ]

    def _attend(self, qkv: torch.Tensor, group: RowGroup) -> torch.Tensor:
        rows, length = group.rows, group.length
        query, key, value = qkv.view(rows, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        places = distance_rows(length, self._shape)
        bias: torch.Tensor | None = None
        if self._keys is not None:
            bias = _placed(query @ self._keys[:, places].transpose(1, 2))
        if self._queries is not None:
            # Seen from the key, distances are the other way round.
            other = _placed(key @ self._queries[:, places.flip(0)].transpose(1, 2)).transpose(2, 3)
            bias = other if bias is None else bias + other
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=self._scale)
        return mixed.transpose(1, 2).reshape(rows * length, -1)


def _placed(scores: torch.Tensor) -> torch.Tensor:
    """[R, H, L, 2L - 1] by distance L - 1 to 1 - L -> a view [R, H, L, L] by key: key j of query i is column L - 1 - i + j."""
    rows, heads, length, columns = scores.shape
    return scores.as_strided(
        (rows, heads, length, length), (heads * length * columns, length * columns, columns - 1, 1), length - 1
    )
