"""What an encoder's first layer reads: tokens, plus learned positions and token types where the model has them, normalised."""

from __future__ import annotations

import torch

from headway.kernels.interface import Kernels
from headway.layers.embedding import Embedding
from headway.layers.layer_norm import LayerNorm
from headway.layers.linear import Linear
from headway.layers.position_embedding import PositionEmbedding


class EncoderEmbedding:
    """norm(projection(token + position + type)). `offset` is the row of a row's first position."""

    __slots__ = ("_add_rows", "norm", "positions", "projection", "segments", "words")

    def __init__(
        self, kernels: Kernels, epsilon: float, *, positions: bool, offset: int, segments: bool, projected: bool
    ):
        self.words = Embedding(kernels)
        self.positions = PositionEmbedding(kernels, offset) if positions else None
        self.segments = Embedding(kernels) if segments else None
        self.norm = LayerNorm(kernels, epsilon)
        self.projection = Linear(kernels) if projected else None
        self._add_rows = kernels.add_rows

    def __call__(
        self, token_ids: torch.Tensor, positions: torch.Tensor, segments: torch.Tensor | None
    ) -> torch.Tensor:
        """int64 [T] each -> [T, hidden]. No types: all 0. Raises IndexError for what is beyond a table."""
        x = self.words(token_ids)
        if self.segments is not None:
            x = self._add_rows(x, self.segments.weight, torch.zeros_like(token_ids) if segments is None else segments)
        if self.positions is not None:
            x = self.positions.add_to(x, positions)
        return self.norm(x if self.projection is None else self.projection(x))
