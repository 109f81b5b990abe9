"""Attention of one query for each sequence over the paged cache. Heads that share keys are computed together; a context is read in parts at
once, which a second kernel joins (as in Flash-Decoding, https://crfm.stanford.edu/2023/10/12/flashdecoding.html)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import tensor

from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.attention_plan import Decodes, TritonPlan
from headway.kernels.triton.operands import dot_operand, key_tile, padded


@triton.jit
def _decode(
    out: tensor, tops: tensor, totals: tensor, query: tensor, keys: tensor, values: tensor, bias: tensor, sequences: tensor,
    first_rows: tensor, context_lens: tensor, tables: tensor, query_token: tensor, query_head: tensor, cache_head: tensor,
    table_stride: tensor, bias_head: tensor, out_row: tensor, out_head: tensor, group: tensor, size: tensor, block: tensor, window: tensor,
    scale: tensor, softcap: tensor, splits: tensor, GROUP: tl.constexpr, SIZE: tl.constexpr, KEYS: tl.constexpr, OPERAND: tl.constexpr,
    WINDOWED: tl.constexpr, CAPPED: tl.constexpr, BIASED: tl.constexpr, WHOLE: tl.constexpr,
) -> None:  # fmt: skip
    """One part of one sequence for the heads of one key head. WHOLE: there is one part, and `out` gets the rounded result."""
    number, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    sequence = tl.load(sequences + number)
    context = tl.load(context_lens + sequence)
    row = tl.load(first_rows + sequence).to(tl.int64)
    members, dims, steps = tl.arange(0, GROUP), tl.arange(0, SIZE), tl.arange(0, KEYS)
    heads = kv_head * group + members
    real, inside = members < group, dims < size
    asked = query + row * query_token + heads[:, None] * query_head + dims[None, :]
    wanted = tl.load(asked, mask=real[:, None] & inside[None, :], other=0.0).to(OPERAND)

    lowest = context * 0
    if WINDOWED:
        lowest = tl.maximum(context - window, 0)
    share = tl.cdiv(tl.cdiv(context - lowest, splits), KEYS) * KEYS
    begin = lowest + split * share
    end = tl.minimum(begin + share, context)
    top = tl.full([GROUP], float("-inf"), tl.float32)
    total = tl.zeros([GROUP], tl.float32)
    mixed = tl.zeros([GROUP, SIZE], tl.float32)
    for start in range(begin, end, KEYS):
        places = start + steps
        seen = places < end
        found = tl.load(tables + sequence.to(tl.int64) * table_stride + places // block, mask=seen, other=0).to(tl.int64)
        cells = kv_head.to(tl.int64) * cache_head + (found * block + places % block)[:, None] * size + dims[None, :]
        there = seen[:, None] & inside[None, :]
        scores = tl.dot(wanted, tl.trans(tl.load(keys + cells, mask=there, other=0.0).to(OPERAND)), input_precision="ieee") * scale
        if CAPPED:  # tanh(x) = 2 sigmoid(2 x) - 1
            scores = softcap * (2.0 * tl.sigmoid(2.0 * scores / softcap) - 1.0)
        if BIASED:
            cell = bias + heads[:, None].to(tl.int64) * bias_head + places[None, :]
            scores += tl.load(cell, mask=real[:, None] & seen[None, :], other=0.0)
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        faded = tl.exp(top - higher)
        total = total * faded + tl.sum(weights, 1)
        read = tl.load(values + cells, mask=there, other=0.0).to(OPERAND)
        mixed = mixed * faded[:, None] + tl.dot(weights.to(OPERAND), read, input_precision="ieee")
        top = higher

    if WHOLE:
        mixed = mixed / tl.where(total == 0.0, 1.0, total)[:, None]
        target = out + row * out_row + heads[:, None] * out_head + dims[None, :]
        tl.store(target, mixed.to(out.dtype.element_ty), mask=real[:, None] & inside[None, :])
    else:
        part = (number * (tl.num_programs(1) * group) + heads).to(tl.int64) * splits + split
        tl.store(out + part[:, None] * size + dims[None, :], mixed, mask=real[:, None] & inside[None, :])
        tl.store(tops + part, top, mask=real)
        tl.store(totals + part, total, mask=real)


@triton.jit
def _join(
    out: tensor, mixed: tensor, tops: tensor, totals: tensor, sequences: tensor, first_rows: tensor, out_row: tensor, heads: tensor,
    size: tensor, splits: tensor, SIZE: tl.constexpr, SPLITS: tl.constexpr,
) -> None:  # fmt: skip
    """The parts of one head of one sequence. A part without keys has a total of zero; a sequence without any gets zeros."""
    number, head = tl.program_id(0), tl.program_id(1)
    row = tl.load(first_rows + tl.load(sequences + number)).to(tl.int64)
    parts, dims = tl.arange(0, SPLITS), tl.arange(0, SIZE)
    inside = dims < size
    first = (number.to(tl.int64) * heads + head) * splits
    there = parts < splits
    top = tl.load(tops + first + parts, mask=there, other=float("-inf"))
    total = tl.load(totals + first + parts, mask=there, other=0.0)
    shares = tl.where(total == 0.0, 0.0, tl.exp(top - tl.max(top, 0)))  # a NaN stays one
    sums = tl.load(mixed + (first + parts)[:, None] * size + dims[None, :], mask=there[:, None] & inside[None, :], other=0.0)
    whole = tl.sum(shares * total, 0)
    result = tl.sum(sums * shares[:, None], 0) / tl.where(whole == 0.0, 1.0, whole)
    tl.store(out + row * out_row + head * size + dims, result.to(out.dtype.element_ty), mask=inside)


def attend_decodes(
    out: torch.Tensor, query: torch.Tensor, kv: PagedKV, layer: int, plan: TritonPlan, decodes: Decodes, window: int | None, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None,
) -> None:  # fmt: skip
    """out_ [T, H * D]: writes the rows of `decodes`."""
    heads, size = query.shape[1:]
    kv_heads, count, splits = kv.shape.num_kv_heads, len(decodes.sequences), decodes.splits
    keys, values = kv.layers[layer]
    whole = splits == 1
    parts = out
    tops = totals = out
    if not whole:
        parts = torch.empty(count * heads * splits, size, dtype=torch.float32, device=out.device)
        tops, totals = (torch.empty(count * heads * splits, dtype=torch.float32, device=out.device) for _ in range(2))
    _decode[(count, kv_heads, splits)](
        parts, tops, totals, query, keys, values, query if key_bias is None else key_bias, decodes.sequences, plan.first_rows,
        plan.context_lens, plan.block_tables, query.stride(0), query.stride(1), keys.stride(0), plan.block_tables.stride(0),
        0 if key_bias is None else key_bias.stride(0), out.stride(0), size, heads // kv_heads, size, kv.block_size, window or 0, scale,
        softcap or 1.0, splits, GROUP=padded(heads // kv_heads), SIZE=padded(size), KEYS=key_tile(size, kv.dtype),
        OPERAND=dot_operand(kv.dtype), WINDOWED=window is not None, CAPPED=softcap is not None, BIASED=key_bias is not None, WHOLE=whole,
        num_stages=2,
    )  # fmt: skip
    if not whole:
        _join[(count, heads)](
            out, parts, tops, totals, decodes.sequences, plan.first_rows, out.stride(0), heads, size, splits, SIZE=triton.next_power_of_2(size),
            SPLITS=triton.next_power_of_2(splits),
        )  # fmt: skip
