"""SiglipTower: squares of pixels -> rows that stand in the decoder's input in the place of embeddings of tokens.

Patches by one matrix, positions by a table, pre-norm layers, a last norm; then neighbouring patches side by side through one more matrix
(pixel shuffle). Defined by Idefics3 in transformers (`Idefics3VisionTransformer`, `Idefics3Connector`); SmolVLM is the same.
"""

from __future__ import annotations

import numpy as np
import torch

from headway.kernels.interface import Kernels
from headway.kernels.row_groups import RowGroup, RowGroups
from headway.layers.embedding import Embedding
from headway.layers.layer_norm import LayerNorm
from headway.layers.linear import Linear
from headway.layers.plain_mlp import PlainMLP
from headway.layers.row_attention import RowAttention, RowStep
from headway.models.vision.vision_config import VisionConfig


class PatchEmbedding:
    """A convolution whose stride is its size: one matrix over the pixels of a patch."""

    __slots__ = ("_linear", "_size")

    def __init__(self, kernels: Kernels, size: int):
        self._linear = Linear(kernels)
        self._size = size

    def load(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        """`weight` [hidden, 3, size, size]."""
        self._linear.load(weight.flatten(1), bias)

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        """[N, 3, S, S] -> [N * patches, hidden], patches line by line."""
        count, channels, height, width = pixels.shape
        size = self._size
        patches = pixels.view(count, channels, height // size, size, width // size, size).permute(0, 2, 4, 1, 3, 5)
        return self._linear(patches.reshape(-1, channels * size * size))


class VisionLayer:
    """Attention among the patches of an image, then feed-forward; each reads the normalised residual stream and is added to it."""

    __slots__ = ("attention", "attention_norm", "mlp", "mlp_norm")

    def __init__(self, kernels: Kernels, config: VisionConfig):
        self.attention_norm = LayerNorm(kernels, config.norm_epsilon)
        self.attention = RowAttention(kernels, config.num_heads, config.head_dim)
        self.mlp_norm = LayerNorm(kernels, config.norm_epsilon)
        self.mlp = PlainMLP(kernels, config.activation, None)

    def __call__(self, x: torch.Tensor, step: RowStep) -> torch.Tensor:
        """[T, hidden] -> [T, hidden]."""
        x = self.attention(self.attention_norm(x), x, step)
        return self.mlp(self.mlp_norm(x), x)


class SiglipTower:
    """Made without weights; `fill` loads the modules by their attribute paths. One thread at a time runs it."""

    def __init__(self, config: VisionConfig, dtype: torch.dtype, kernels: Kernels):
        self.config = config
        self.dtype = dtype
        self.patches = PatchEmbedding(kernels, config.patch_size)
        self.positions = Embedding(kernels)
        self.layers = [VisionLayer(kernels, config) for _ in range(config.num_layers)]
        self.norm = LayerNorm(kernels, config.norm_epsilon)
        self.connector = Linear(kernels)
        self._position_ids = position_ids(config.side)

    @torch.inference_mode()
    def encode(self, pixels: torch.Tensor) -> torch.Tensor:
        """[N, 3, S, S] as the model wants them -> [N, rows, output_size] in `dtype`."""
        count, patches = len(pixels), self.config.patches
        x = self.patches(pixels.to(self.dtype)) + self.positions(self._position_ids).repeat(count, 1)
        groups = RowGroups((RowGroup(0, count, patches),), np.arange(count + 1, dtype=np.int64) * patches)
        step = RowStep(groups)
        for layer in self.layers:
            x = layer(x, step)
        shuffled = self._shuffled(self.norm(x).view(count, self.config.side, self.config.side, -1))
        return self.connector(shuffled).view(count, self.config.rows, -1)

    def _shuffled(self, x: torch.Tensor) -> torch.Tensor:
        """[N, side, side, hidden] -> [N * rows, hidden * shuffle^2]: squares of neighbours side by side, line by line in the square."""
        count, side, by = len(x), self.config.side, self.config.shuffle
        squares = x.view(count, side // by, by, side // by, by, -1).transpose(2, 3)
        return squares.reshape(count * self.config.rows, -1)


def position_ids(side: int) -> torch.Tensor:
    """int64 [side * side]: the row of the table of positions for each patch, found by the fraction of the side at which the patch begins.

    The fractions and borders are float32, as in transformers, so that one which rounds to the other side of a border does so here too.
    """
    borders = torch.arange(1 / side, 1.0, 1 / side)
    begins = torch.clamp(torch.arange(side, dtype=torch.float32) * (1.0 / torch.tensor(side)), max=1.0 - 1e-6)
    buckets = torch.bucketize(begins, borders, right=True)
    return (buckets[:, None] * side + buckets[None, :]).flatten()
