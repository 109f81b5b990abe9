"""Rotation of queries and keys in place, and writing keys and values to their slots: one kernel, of which either half may be off."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import tensor

from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.attention_plan import TritonPlan


@triton.jit
def _rotate_and_store(
    rows: tensor, cos: tensor, sin: tensor, cache: tensor, slots: tensor, token_stride: tensor, head_stride: tensor, table_stride: tensor,
    cache_head_stride: tensor, turning: tensor, unstored: tensor, half: tensor, size: tensor, HALF: tl.constexpr, SIZE: tl.constexpr,
    ROTATED: tl.constexpr, STORED: tl.constexpr,
) -> None:  # fmt: skip
    """One head of one token. Heads below `turning` turn their first 2 * half numbers, those from `unstored` on are stored. A thread reads both
    numbers of a pair before it writes either."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    start = rows + token * token_stride + head * head_stride
    pairs_turned = tl.where(head < turning, half, 0)
    target, kept = cache, 0
    if STORED:
        slot = tl.load(slots + token)
        kept = tl.where((head >= unstored) & (slot >= 0), size, 0)
        target = cache + (head - unstored).to(tl.int64) * cache_head_stride + slot * size
    if ROTATED:
        pairs = tl.arange(0, HALF)
        inside = pairs < pairs_turned
        angles = token * table_stride + pairs
        first = tl.load(start + pairs, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(start + half + pairs, mask=inside, other=0.0).to(tl.float32)
        new_first = first * tl.load(cos + angles, mask=inside, other=0.0).to(tl.float32)
        new_first += second * tl.load(sin + angles, mask=inside, other=0.0).to(tl.float32)
        new_second = second * tl.load(cos + half + angles, mask=inside, other=0.0).to(tl.float32)
        new_second += first * tl.load(sin + half + angles, mask=inside, other=0.0).to(tl.float32)
        tl.store(start + pairs, new_first.to(rows.dtype.element_ty), mask=inside)
        tl.store(start + half + pairs, new_second.to(rows.dtype.element_ty), mask=inside)
        if STORED:
            tl.store(target + pairs, new_first.to(cache.dtype.element_ty), mask=inside & (pairs < kept))
            tl.store(target + half + pairs, new_second.to(cache.dtype.element_ty), mask=inside & (pairs < kept))
    if STORED:
        columns = tl.arange(0, SIZE)
        unturned = (columns >= 2 * pairs_turned) & (columns < kept)
        numbers = tl.load(start + columns, mask=unturned, other=0.0)
        tl.store(target + columns, numbers.to(cache.dtype.element_ty), mask=unturned)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """x_ [T, heads, D], of which the numbers of a head lie side by side."""
    tokens, heads, size = x.shape
    if tokens:
        half = size // 2
        _rotate_and_store[(tokens, heads)](
            x, cos, sin, x, x, x.stride(0), x.stride(1), cos.stride(0), 0, heads, heads, half, size, HALF=triton.next_power_of_2(half),
            SIZE=1, ROTATED=True, STORED=False,
        )  # fmt: skip


def store(rows: torch.Tensor, kv: PagedKV, layer: int, plan: TritonPlan) -> None:
    """rows [T, 2K, D], of which the numbers of a head lie side by side."""
    tokens, heads, size = rows.shape
    if tokens:
        _rotate_and_store[(tokens, heads)](
            rows, rows, rows, kv.layers[layer], plan.slots, rows.stride(0), rows.stride(1), 0, kv.layers[layer].stride(1), 0, 0, 0, size,
            HALF=1, SIZE=triton.next_power_of_2(size), ROTATED=False, STORED=True,
        )  # fmt: skip


def rotate_and_store(
    rows: torch.Tensor, heads: int, cos: torch.Tensor, sin: torch.Tensor, kv: PagedKV, layer: int, plan: TritonPlan
) -> None:
    """rows_ [T, H + 2K, D], of which the numbers of a head lie side by side. Keys in `rows` are turned as well."""
    tokens, count, size = rows.shape
    if tokens:
        half = cos.shape[-1] // 2
        _rotate_and_store[(tokens, count)](
            rows, cos, sin, kv.layers[layer], plan.slots, rows.stride(0), rows.stride(1), cos.stride(0), kv.layers[layer].stride(1),
            (count + heads) // 2, heads, half, size, HALF=triton.next_power_of_2(half), SIZE=triton.next_power_of_2(size), ROTATED=True,
            STORED=True,
        )  # fmt: skip
