"""Rotary position embedding: tables for the positions of one step, shared by all layers that rotate alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.kernels.interface import Kernels
from headway.layers.rope_frequencies import RopeSpec, inverse_frequencies


@dataclass(frozen=True, slots=True)
class RotaryTables:
    """cos and sin [T, 1, rotated dimensions]; the first half of sin is negative, as `Kernels.rotate` wants it."""

    cos: torch.Tensor
    sin: torch.Tensor


class Rotary:
    """Angles are float32; cos and sin are rounded once to the dtype of the activations, as transformers does."""

    __slots__ = ("_attention_factor", "_frequencies", "_tables")

    def __init__(self, kernels: Kernels, spec: RopeSpec, head_dim: int):
        self._frequencies = inverse_frequencies(spec, head_dim).to(kernels.device)
        self._attention_factor = spec.attention_factor
        self._tables = kernels.rotary_tables

    def tables(self, positions: torch.Tensor, dtype: torch.dtype) -> RotaryTables:
        """positions int64 [T]."""
        return RotaryTables(*self._tables(positions, self._frequencies, self._attention_factor, dtype))
