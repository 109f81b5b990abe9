"""BlockImages: single blocks of a PagedKV as bytes, keys, values and scales of all layers in one piece."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from headway.kernels.paged_kv import PagedKV

Image = NDArray[np.uint8]


class BlockImages:
    """Views of the storage, which stays the owner of its memory. An image is [nbytes] uint8: part by part (layers, then scales), in each
    the rows of all key and value heads."""

    def __init__(self, kv: PagedKV):
        heads = 2 * kv.shape.num_kv_heads
        self._parts = [part.view(torch.uint8).numpy().reshape(heads, kv.num_blocks, -1) for part in (*kv.layers, *kv.scales)]
        self.nbytes: Final[int] = sum(part.shape[0] * part.shape[2] for part in self._parts)

    def read(self, block: int, image: Image) -> None:
        """Copy a block to `image`."""
        at = 0
        for part in self._parts:
            rows, _, width = part.shape
            image[at : at + rows * width].reshape(rows, width)[...] = part[:, block]
            at += rows * width

    def write(self, block: int, image: Image) -> None:
        """Copy `image` to a block."""
        at = 0
        for part in self._parts:
            rows, _, width = part.shape
            part[:, block] = image[at : at + rows * width].reshape(rows, width)
            at += rows * width
