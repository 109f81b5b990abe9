"""`Kernels.rotate_and_store` of a backend that has the two steps on their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headway.kernels.paged_kv import PagedKV

RotateAndStore = Callable[[torch.Tensor, int, torch.Tensor, torch.Tensor, PagedKV, int, Any], None]


def one_after_the_other(
    rotate: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None], store: Callable[[torch.Tensor, PagedKV, int, Any], None]
) -> RotateAndStore:
    """The functions are those of `Kernels`."""

    def rotate_and_store(
        rows: torch.Tensor, heads: int, cos: torch.Tensor, sin: torch.Tensor, kv: PagedKV, layer: int, plan: Any
    ) -> None:
        turning = rows[:, : (rows.shape[1] + heads) // 2]
        rotate(turning if cos.shape[-1] == rows.shape[2] else turning[..., : cos.shape[-1]], cos, sin)
        store(rows[:, heads:], kv, layer, plan)

    return rotate_and_store
