"""Biases of keys (ALiBi) in every backend, against attention that is written out."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.interface import Kernels, reach
from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.paged_kv import KVShape, PagedKV
from headway.kernels.reference import REFERENCE
from headway.kernels.torch_backend import TORCH
from tests.kernels.batches import Chunk, make_batch, scattered_blocks

BLOCK, HEADS, KV_HEADS, SIZE = 4, 6, 2, 8
LENGTHS = [(1, 200), (30, 90), (41, 41), (1, 7)]  # new tokens, context


def written_out(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """query [H, T, D] of the last T positions, keys and values [K, C, D] -> [T, H * D]."""
    count, length = query.shape[1], keys.shape[1]
    grouped_keys, grouped_values = (x.repeat_interleave(HEADS // KV_HEADS, 0) for x in (keys, values))
    scores = query @ grouped_keys.transpose(1, 2) * 0.3 + bias[:, None, :length]
    hidden = torch.arange(length) > torch.arange(length - count, length)[:, None]
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ grouped_values).transpose(0, 1).flatten(1)


@pytest.mark.parametrize("kernels", [REFERENCE, TORCH, INVARIANT], ids=lambda kernels: kernels.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_scores_rise_by_the_bias_of_their_key(kernels: Kernels, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    tables, total = scattered_blocks([end for _, end in LENGTHS], BLOCK, seed=1)
    batch = make_batch([Chunk([0] * n, end, table) for (n, end), table in zip(LENGTHS, tables, strict=True)], BLOCK)
    kv = PagedKV(total, BLOCK, KVShape(1, KV_HEADS, SIZE), dtype)
    kv.layers[0].copy_(torch.randn(kv.layers[0].shape, generator=generator))
    rows = torch.randn(len(batch.slots), HEADS + 2 * KV_HEADS, SIZE, generator=generator).to(dtype)
    # Rising, as ALiBi: in 16 bits the scores of late keys would drown in it.
    bias = torch.rand(HEADS, 1, generator=generator) * torch.arange(reach(200, BLOCK))
    plan = kernels.plan(batch, kv, HEADS, frozenset((None,)))
    kernels.store(rows[:, HEADS:], kv, 0, plan)
    found = kernels.attend(rows[:, :HEADS], kv, 0, plan, None, 0.3, None, bias)
    assert found.dtype == dtype
    start = 0
    for (count, end), table in zip(LENGTHS, tables, strict=True):
        keys, values = (part[:, table].flatten(1, 2)[:, :end].float() for part in kv.layers[0])
        query = rows[start : start + count, :HEADS].float().transpose(0, 1)
        close = {"atol": 1e-5, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 0.03, "rtol": 0.03}
        torch.testing.assert_close(found[start : start + count].float(), written_out(query, keys, values, bias), **close)
        start += count
