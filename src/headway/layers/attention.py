"""Self-attention of a decoder layer over the paged cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import PagedKV
from headway.layers.linear import Linear
from headway.layers.norms import HeadNorms, Norm
from headway.layers.residual_projection import ResidualProjection
from headway.layers.rotary import RotaryTables


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """What one layer's attention looks like. `rope` is the index of its tables in `Step.tables`, None without rotation."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    window: int | None
    rope: int | None
    softcap: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What all layers of one forward pass share."""

    kv: PagedKV
    plan: Any  # made by Kernels.plan
    tables: tuple[RotaryTables, ...]
    key_bias: torch.Tensor | None = None  # what `Kernels.attend` adds to scores


class Attention:
    """residual + output(attention(x)). Query, key and value heads come from one matrix product, side by side."""

    __slots__ = ("_attend", "_layer", "_rotate_and_store", "_shape", "_store", "head_norm", "output", "qkv")

    def __init__(
        self, kernels: Kernels, layer: int, shape: AttentionShape, head_norm: HeadNorms | None, post_norm: Norm | None,
        residual_scale: float | None,
    ):  # fmt: skip
        self.qkv = Linear(kernels)
        self.head_norm = head_norm
        self.output = ResidualProjection(kernels, post_norm, residual_scale)
        self._rotate_and_store, self._store, self._attend = kernels.rotate_and_store, kernels.store, kernels.attend
        self._layer = layer
        self._shape = shape

    def __call__(self, x: torch.Tensor, residual: torch.Tensor, step: Step) -> torch.Tensor:
        """x (normalised) and residual [T, hidden] -> the new residual. Writes this layer's keys and values."""
        shape = self._shape
        rows = self.qkv(x).view(x.shape[0], -1, shape.head_dim)
        if self.head_norm is not None:
            self.head_norm(rows[:, : shape.num_heads + shape.num_kv_heads])
        if shape.rope is None:
            self._store(rows[:, shape.num_heads :], step.kv, self._layer, step.plan)
        else:
            tables = step.tables[shape.rope]
            self._rotate_and_store(rows, shape.num_heads, tables.cos, tables.sin, step.kv, self._layer, step.plan)
        query = rows[:, : shape.num_heads]
        mixed = self._attend(query, step.kv, self._layer, step.plan, shape.window, shape.scale, shape.softcap, step.key_bias)
        return self.output(residual, mixed)
