"""Paged attention for one forward pass of a transformers model."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import PagedKV
from headway.models.fallback.attention import MaskFunction
from headway.models.fallback.trial_run import AttentionNeeds, mark


class PagedStep:
    """Answers the calls of a forward pass as the trial run found them: the same calls in the same order.

    The n-th attention keeps its keys and values in layer n of the cache.
    """

    def __init__(self, kernels: Kernels, needs: AttentionNeeds, batch: ForwardBatch, kv: PagedKV):
        self._kernels = kernels
        self._needs = needs
        self._kv = kv
        self._plan = kernels.plan(batch, kv, needs.heads, needs.call_windows)
        self._masks = 0
        self._calls = 0

    def mask(self, visible: MaskFunction) -> torch.Tensor:
        window = self._needs.windows[self._masks]
        self._masks += 1
        return mark(window)

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, options: dict[str, Any]
    ) -> torch.Tensor:
        layer, call = self._calls, self._needs.calls[self._calls]
        self._calls += 1
        kv = self._kv
        shape = kv.shape
        rows = torch.cat([_rows(part, shape.num_kv_heads, shape.head_dim) for part in (key, value)], 1)
        dtype = query.dtype if kv.scales else kv.dtype
        self._kernels.store(rows.to(dtype), kv, layer, self._plan)
        asked = F.pad(query[0].transpose(0, 1), (0, shape.head_dim - query.shape[3])).to(dtype).contiguous()
        mixed = self._kernels.attend(asked, kv, layer, self._plan, call.window, call.scale, call.softcap, None)
        heads = mixed.view(1, query.shape[2], call.heads, shape.head_dim)
        return heads[..., : value.shape[3]].to(query.dtype).contiguous()


def _rows(part: torch.Tensor, heads: int, size: int) -> torch.Tensor:
    """[1, K, T, D] -> [T, heads, size]: heads repeated, vectors filled up with zeros, as the cache wants them."""
    found = part[0].transpose(0, 1)
    if found.shape[1] < heads:
        found = found.repeat_interleave(heads // found.shape[1], 1)
    return F.pad(found, (0, size - found.shape[2])) if found.shape[2] < size else found
