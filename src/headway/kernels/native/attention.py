"""Attention by native kernels: arguments here, arithmetic in csrc/kernels. See `Kernels` for what each function computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import torch

from headway.kernels.batch import ForwardBatch, IntArray
from headway.kernels.native.pointwise import DTYPES
from headway.kernels.native.tape import Tape
from headway.kernels.paged_kv import PagedKV
from headway.kernels.row_groups import RowGroups

_KV_DTYPES: Final = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """Where kernels read about the sequences of a step: when they run, not before."""

    slots: torch.Tensor  # [T] int64
    query_lens: IntArray  # [S]
    context_lens: IntArray  # [S]
    block_tables: IntArray  # [S, B]
    workspace: torch.Tensor


class NativeAttention:
    """The attention of every model that shares a tape."""

    def __init__(self, tape: Tape):
        self._tape = tape
        self._workspace = torch.empty(0, dtype=torch.uint8)
        self._layers: WeakKeyDictionary[PagedKV, list[Any]] = WeakKeyDictionary()

    def plan(self, batch: ForwardBatch, kv: PagedKV, num_heads: int, windows: frozenset[int | None]) -> AttentionInputs:
        """While recording, the batch must be one of `StepInputs`: its arrays are what the recorded kernels will read."""
        return AttentionInputs(
            batch.slots, np.ascontiguousarray(batch.query_lens, np.int32), np.ascontiguousarray(batch.context_lens, np.int32),
            np.ascontiguousarray(batch.block_tables, np.int32), self._room(kv.shape.head_dim),
        )  # fmt: skip

    def store(self, rows: torch.Tensor, kv: PagedKV, layer: int, plan: AttentionInputs) -> None:
        """rows [T, 2K, D], of which the heads of a token lie side by side."""
        self._tape.sink.kv_store(
            self._layer(kv, layer), rows.data_ptr(), plan.slots.data_ptr(), rows.shape[0], rows.stride(0), DTYPES[rows.dtype]
        )

    def rotate_and_store(
        self, rows: torch.Tensor, heads: int, cos: torch.Tensor, sin: torch.Tensor, kv: PagedKV, layer: int, plan: AttentionInputs
    ) -> None:
        """rows_ [T, H + 2K, D]: `rotate` of the first cos.shape[-1] numbers of queries (in place) and keys, then `store`. Keys in `rows`
        are turned as well."""
        self._tape.sink.rotate_and_store(
            self._layer(kv, layer), rows.data_ptr(), plan.slots.data_ptr(), cos.data_ptr(), sin.data_ptr(), rows.shape[0], heads,
            cos.shape[-1] // 2, rows.stride(0), cos.stride(0), DTYPES[rows.dtype],
        )  # fmt: skip

    def attend(
        self, query: torch.Tensor, kv: PagedKV, layer: int, plan: AttentionInputs, window: int | None, scale: float,
        softcap: float | None, key_bias: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """query [T, H, D], of which the heads of a token lie side by side."""
        tokens, heads, size = query.shape
        out = self._tape.empty(tokens, heads * size, dtype=query.dtype)
        self._tape.sink.attend(
            self._layer(kv, layer), out.data_ptr(), query.data_ptr(), plan.query_lens.ctypes.data, plan.context_lens.ctypes.data,
            plan.block_tables.ctypes.data, 0 if key_bias is None else key_bias.data_ptr(), plan.workspace.data_ptr(),
            len(plan.query_lens), heads, query.stride(0), plan.block_tables.shape[1], 0 if key_bias is None else key_bias.stride(0),
            window or 0, scale, softcap or 0.0, DTYPES[query.dtype],
        )  # fmt: skip
        return out

    def attend_rows(
        self, qkv: torch.Tensor, groups: RowGroups, heads: int, reach: int | None, scale: float, bias: torch.Tensor | None
    ) -> torch.Tensor:
        """qkv [T, 3H, D], of which the heads of a token lie side by side."""
        tokens, _, size = qkv.shape
        out = self._tape.empty(tokens, heads * size, dtype=qkv.dtype)
        wide = None if bias is None else bias.float().contiguous()
        self._tape.sink.attend_rows(
            out.data_ptr(), qkv.data_ptr(), groups.starts.ctypes.data, 0 if wide is None else wide.data_ptr(), self._room(size).data_ptr(),
            len(groups.starts) - 1, heads, size, qkv.stride(0), 0 if wide is None else wide.stride(0), 0 if wide is None else wide.stride(1),
            -1 if reach is None else reach, scale, DTYPES[qkv.dtype],
        )  # fmt: skip
        return out

    def _room(self, head_dim: int) -> torch.Tensor:
        """Memory that kernels compute in. Calls that run one after the other share it."""
        size = self._tape.sink.attention_workspace(head_dim, self._tape.threads)
        if self._tape.recording:
            return self._tape.empty(size, dtype=torch.uint8)
        if len(self._workspace) < size:
            self._workspace = torch.empty(size, dtype=torch.uint8)
        return self._workspace

    def _layer(self, kv: PagedKV, layer: int) -> Any:
        found = self._layers.get(kv)
        if found is None:
            found = self._layers[kv] = [self._paged_layer(kv, i) for i in range(len(kv.layers))]
        return found[layer]

    def _paged_layer(self, kv: PagedKV, layer: int) -> Any:
        keys, values = kv.layers[layer]
        scales = [part.data_ptr() for part in kv.scales[layer]] if kv.scales else [0, 0]
        return self._tape.sink.PagedLayer(
            keys.data_ptr(), values.data_ptr(), *scales, keys.stride(0), kv.shape.num_kv_heads, kv.shape.head_dim, kv.block_size,
            _KV_DTYPES[kv.dtype],
        )  # fmt: skip
