"""Encoder: what the runtime asks of a text encoder."""

from __future__ import annotations

import abc
from collections.abc import Collection
from dataclasses import dataclass, field

import torch

from headway.kernels.packed_batch import PackedBatch


@dataclass(frozen=True, slots=True)
class Encoded:
    """`last` [T, hidden]: hidden states after the last layer, final norm applied where the model has one. `exits`: the
    same after layer n (1 = the first), for the layers that were asked for; see `norm_exits`."""

    last: torch.Tensor
    exits: dict[int, torch.Tensor] = field(default_factory=dict)


class Encoder(abc.ABC):
    """Weights in memory, packed once. One thread at a time runs it."""

    hidden_size: int
    num_layers: int
    max_positions: int  # the most tokens in a row, special ones included
    dtype: torch.dtype
    norm_exits: bool = True
    """Whether the final norm is applied at exits below the last layer too."""

    @abc.abstractmethod
    def encode(self, batch: PackedBatch, exits: Collection[int] = ()) -> Encoded:
        """Run all rows; a row sees itself only. When every wanted exit is below the last layer, the layers above it are
        skipped and `last` is the highest exit."""
