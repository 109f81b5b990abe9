"""Attention of runs of new tokens over the paged cache, in which their own keys already are: whole prompts, chunks, and what follows a prefix
that was computed before."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import tensor

from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.attention_plan import Prefills, TritonPlan
from headway.kernels.triton.operands import dot_operand, key_tile, padded


@triton.jit
def _prefill(
    out: tensor, query: tensor, keys: tensor, values: tensor, bias: tensor, sequences: tensor, firsts: tensor, first_rows: tensor,
    query_lens: tensor, context_lens: tensor, tables: tensor, query_token: tensor, query_head: tensor, cache_head: tensor,
    table_stride: tensor, bias_head: tensor, out_row: tensor, group: tensor, size: tensor, block: tensor, window: tensor, scale: tensor,
    softcap: tensor, WIDTH: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, SIZE: tl.constexpr, KEYS: tl.constexpr,
    OPERAND: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr,
) -> None:  # fmt: skip
    """WIDTH queries of one sequence for the heads of one key head: row r is query r // GROUP and head r % GROUP of them."""
    tile, kv_head = tl.program_id(0), tl.program_id(1)
    sequence, first = tl.load(sequences + tile), tl.load(firsts + tile)
    count, context = tl.load(query_lens + sequence), tl.load(context_lens + sequence)
    rows, dims, steps = tl.arange(0, ROWS), tl.arange(0, SIZE), tl.arange(0, KEYS)
    places_asked, heads = first + rows // GROUP, kv_head * group + rows % GROUP
    real = (rows // GROUP < WIDTH) & (places_asked < count) & (rows % GROUP < group)
    inside = dims < size
    tokens = tl.load(first_rows + sequence).to(tl.int64) + places_asked
    asked = query + tokens[:, None] * query_token + heads[:, None] * query_head + dims[None, :]
    wanted = tl.load(asked, mask=real[:, None] & inside[None, :], other=0.0).to(OPERAND)

    positions = context - count + places_asked
    begin = context * 0
    if WINDOWED:
        begin = tl.maximum(context - count + first - window + 1, 0)
    end = tl.minimum(context - count + first + WIDTH, context)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, SIZE], tl.float32)
    for start in range(begin, end, KEYS):
        places = start + steps
        there = places < end
        found = tl.load(tables + sequence.to(tl.int64) * table_stride + places // block, mask=there, other=0).to(tl.int64)
        cells = kv_head.to(tl.int64) * cache_head + (found * block + places % block)[:, None] * size + dims[None, :]
        readable = there[:, None] & inside[None, :]
        scores = tl.dot(wanted, tl.trans(tl.load(keys + cells, mask=readable, other=0.0).to(OPERAND)), input_precision="ieee") * scale
        if CAPPED:  # tanh(x) = 2 sigmoid(2 x) - 1
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)
        if BIASED:
            cell = bias + heads[:, None].to(tl.int64) * bias_head + places[None, :]
            scores += tl.load(cell, mask=real[:, None] & there[None, :], other=0.0)
        seen = there[None, :] & (places[None, :] <= positions[:, None])
        if WINDOWED:
            seen = seen & (places[None, :] > positions[:, None] - window)
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        level = tl.where(higher == float("-inf"), 0.0, higher)  # a row that has seen no key yet
        weights = tl.exp(scores - level[:, None])
        faded = tl.exp(top - level)
        total = total * faded + tl.sum(weights, 1)
        read = tl.load(values + cells, mask=readable, other=0.0).to(OPERAND)
        mixed = mixed * faded[:, None] + tl.dot(weights.to(OPERAND), read, input_precision="ieee")
        top = higher

    mixed = mixed / tl.where(total == 0.0, 1.0, total)[:, None]
    target = out + tokens[:, None] * out_row + heads[:, None] * size + dims[None, :]
    tl.store(target, mixed.to(out.dtype.element_ty), mask=real[:, None] & inside[None, :])


def attend_prefills(
    out: torch.Tensor, query: torch.Tensor, kv: PagedKV, layer: int, plan: TritonPlan, prefills: Prefills, window: int | None, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None,
) -> None:  # fmt: skip
    """out_ [T, H * D]: writes the rows of `prefills`."""
    heads, size = query.shape[1:]
    kv_heads = kv.shape.num_kv_heads
    keys, values = kv.layers[layer]
    group = triton.next_power_of_2(heads // kv_heads)
    _prefill[(len(prefills.sequences), kv_heads)](
        out, query, keys, values, query if key_bias is None else key_bias, prefills.sequences, prefills.first, plan.first_rows, plan.query_lens,
        plan.context_lens, plan.block_tables, query.stride(0), query.stride(1), keys.stride(0), plan.block_tables.stride(0),
        0 if key_bias is None else key_bias.stride(0), out.stride(0), heads // kv_heads, size, kv.block_size, window or 0, scale,
        softcap or 1.0, WIDTH=prefills.width, GROUP=group, ROWS=padded(prefills.width * group), SIZE=padded(size),
        KEYS=key_tile(size, kv.dtype), OPERAND=dot_operand(kv.dtype), WINDOWED=window is not None, CAPPED=softcap is not None,
        BIASED=key_bias is not None, num_stages=2,
    )  # fmt: skip
