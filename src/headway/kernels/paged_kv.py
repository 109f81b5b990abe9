"""PagedKV: the memory in which keys and values live, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from headway.host.page_release import release_pages

# Bytes beside each vector of a head, by dtype: the scale of its codes.
SCALE_BYTES: Final = {torch.int8: 4}


@dataclass(frozen=True, slots=True)
class KVShape:
    """What one token keeps in every layer: a key and a value of `num_kv_heads` x `head_dim` numbers."""

    num_layers: int
    num_kv_heads: int
    head_dim: int


class PagedKV:
    """One tensor per layer, [2, kv heads, blocks, block_size, head_dim]; [0] keys, [1] values.

    A block of one head is contiguous, so gathering whole blocks of a sequence, head by head, gives [kv heads, length,
    head_dim] ready for a batched matmul. Memory starts as zero pages that the system commits when they are first
    written. Padding in the kernels reads block 0 and the unwritten rest of last blocks: whatever lies there must be
    finite, because 0 x NaN is NaN. Hence zeros at the start, and `clear` for blocks of a request that went wrong.

    In int8 a number is code * scale, and `scales` has one scale for each token and head, [2, kv heads, blocks, block_size] float32 per
    layer; in other dtypes it is empty.
    """

    def __init__(self, num_blocks: int, block_size: int, shape: KVShape, dtype: torch.dtype, device: torch.device | None = None):
        """Raises ValueError for sizes below one. `device` None = the CPU."""
        if min(num_blocks, block_size, shape.num_layers, shape.num_kv_heads, shape.head_dim) < 1:
            raise ValueError(f"PagedKV needs positive sizes, found {num_blocks} blocks of {block_size} for {shape}")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.shape = shape
        self.dtype = dtype
        sizes = (2, shape.num_kv_heads, num_blocks, block_size, shape.head_dim)
        self.layers = [_lazy_zeros(sizes, dtype, device) for _ in range(shape.num_layers)]
        scaled = shape.num_layers if dtype in SCALE_BYTES else 0
        self.scales = [_lazy_zeros(sizes[:-1], torch.float32, device) for _ in range(scaled)]
        # Two views of the same memory: a row per block of a head, and a row per token of a head.
        self.block_rows = [layer.view(-1, block_size * shape.head_dim) for layer in self.layers]
        self.token_rows = [layer.view(-1, shape.head_dim) for layer in self.layers]
        self._scratch = torch.empty(0, dtype=dtype)

    @property
    def nbytes(self) -> int:
        """Bytes reserved; committed as they are written."""
        return sum(part.nbytes for part in (*self.layers, *self.scales))

    def scratch(self, rows: int, width: int) -> torch.Tensor:
        """An uninitialised [rows, width] buffer that the next call may hand out again. One thread uses it."""
        if self._scratch.numel() < rows * width:
            self._scratch = torch.empty(rows * width, dtype=self.dtype)
        return self._scratch[: rows * width].view(rows, width)

    def clear(self, blocks: Sequence[int]) -> None:
        """Zero these blocks in all layers. For blocks that may hold NaN or infinity, before anyone else gets them."""
        index = torch.tensor(list(blocks), dtype=torch.int64, device=self.layers[0].device)
        for part in (*self.layers, *self.scales):
            part.index_fill_(2, index, 0)

    def release(self) -> None:
        """Give the memory of all blocks back. They are at the same addresses and read as zeros, but for the odd bytes at the ends of tensors."""
        for part in (*self.layers, *self.scales):
            release_pages(part.data_ptr(), part.nbytes)


def _lazy_zeros(sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device | None) -> torch.Tensor:
    """Zeros, on the CPU without touching the pages: numpy gets them from calloc, torch.zeros would write them."""
    if device is not None and device.type != "cpu":
        return torch.zeros(sizes, dtype=dtype, device=device)
    count = int(np.prod(sizes)) * dtype.itemsize
    return torch.from_numpy(np.zeros(count, dtype=np.uint8)).view(dtype).view(sizes)
