"""What some checkpoints do to their tensors, undone while they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import torch

from headway.models.sized_config import SizedConfig

Transform = Literal["plus_one", "undo_permutation", "transposed", "grouped_qkv"]


def _plus_one(stored: torch.Tensor, config: SizedConfig) -> torch.Tensor:
    """Norms that scale by 1 + w store w."""
    return stored.add_(1.0)


def _undo_permutation(stored: torch.Tensor, config: SizedConfig) -> torch.Tensor:
    """Rows of every head from (pair, half) to (half, pair) order. Also for biases [rows]."""
    pairs = stored.view(-1, config.head_dim // 2, 2, stored[0].numel())
    return pairs.transpose(1, 2).reshape(stored.shape)


def _transposed(stored: torch.Tensor, config: SizedConfig) -> torch.Tensor:
    """[in, out] -> [out, in]: the Conv1D of GPT-2."""
    return stored.t()


def _grouped_qkv(stored: torch.Tensor, config: SizedConfig) -> torch.Tensor:
    """For every key head its queries, its key and its value -> all queries, all keys, all values. Also for biases."""
    queries = config.num_heads // config.num_kv_heads
    groups = stored.view(config.num_kv_heads, queries + 2, config.head_dim, *stored.shape[1:])
    parts = (groups[:, :queries], groups[:, queries], groups[:, queries + 1])
    return torch.cat([part.reshape(-1, *stored.shape[1:]) for part in parts])


TRANSFORMS: Final[Mapping[Transform, Callable[[torch.Tensor, SizedConfig], torch.Tensor]]] = {
    "plus_one": _plus_one,
    "undo_permutation": _undo_permutation,
    "transposed": _transposed,
    "grouped_qkv": _grouped_qkv,
}

# Those that only put rows in another order.
_ROW_ORDERS: Final[frozenset[Transform]] = frozenset({"undo_permutation", "grouped_qkv"})


def row_order(transform: Transform | None, rows: int, config: SizedConfig) -> torch.Tensor | None:
    """Which stored row each row of the result is, int64 [rows]. Raises ValueError for a transform that does more than that."""
    if transform is None:
        return None
    if transform not in _ROW_ORDERS:
        raise ValueError(f"{transform} is no order of rows")
    return TRANSFORMS[transform](torch.arange(rows), config)


def keeps_rows(transform: Transform | None) -> bool:
    return transform is None or transform in _ROW_ORDERS
