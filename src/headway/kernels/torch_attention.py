"""Paged attention with torch operators: gather whole blocks, two batched matmuls, softmax in between.

Why not scaled_dot_product_attention (microseconds for one layer, bf16, 9/3 heads of 64, two Zen 4 cores): for 32 single
queries over 256 keys it takes 5,300 (grouped heads) or 640 (heads of a group as queries), the matmuls take 260; for 512
causal queries 4,500 against 2,900; for 2,048 queries 41,000 against 30,000-35,000. In float32 the two are equal.
Scores leave the matmul in the dtype of the model, as in transformers' eager attention; softmax is computed in float32.
"""

from __future__ import annotations

import torch

from headway.kernels.attention_plan import AttentionPlan, Group
from headway.kernels.attention_tiles import Tile
from headway.kernels.paged_kv import PagedKV


def store(rows: torch.Tensor, kv: PagedKV, layer: int, plan: AttentionPlan) -> None:
    kv.token_rows[layer].index_put_((plan.slot_rows,), rows)


def attend(
    query: torch.Tensor, kv: PagedKV, layer: int, plan: AttentionPlan, window: int | None, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    groups = plan.groups[window]
    if groups[0].tokens is None:
        return _attend_group(query, kv, layer, groups[0], scale, softcap, key_bias)
    out = query.new_empty(query.shape[0], query.shape[1] * query.shape[2])
    for group in groups:
        assert group.tokens is not None
        mixed = _attend_group(query.index_select(0, group.tokens), kv, layer, group, scale, softcap, key_bias)
        if group.real is None or group.targets is None:
            out.index_copy_(0, group.tokens, mixed)
        else:
            out.index_copy_(0, group.targets, mixed.index_select(0, group.real))
    return out


def _attend_group(
    query: torch.Tensor, kv: PagedKV, layer: int, group: Group, scale: float, softcap: float | None,
    key_bias: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """[R * width, H, D] -> [R * width, H * D]."""
    heads, size = query.shape[1:]
    rows, width, kv_heads = group.rows, group.width, kv.shape.num_kv_heads
    keys, values = _gather(kv, layer, group)
    if width == 1:
        mixed = _attend_tile(query.reshape(rows * kv_heads, -1, size), keys, values, group.tiles[0], rows, scale, softcap, key_bias)
        return mixed.view(rows, heads * size)
    grouped = query.reshape(rows, width, kv_heads, -1, size)
    out = torch.empty_like(grouped)
    for tile in group.tiles:
        part = grouped[:, tile.queries].permute(0, 2, 3, 1, 4)
        mixed = _attend_tile(part.reshape(rows * kv_heads, -1, size), keys, values, tile, rows, scale, softcap, key_bias)
        out[:, tile.queries] = mixed.view(part.shape).permute(0, 3, 1, 2, 4)
    return out.view(rows * width, heads * size)


def _gather(kv: PagedKV, layer: int, group: Group) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of all rows of a group, [R * kv heads, length, D] each."""
    source = kv.block_rows[layer]
    target = kv.scratch(group.blocks.shape[0], source.shape[1])
    torch.index_select(source, 0, group.blocks, out=target)
    keys, values = target.view(2, group.rows * kv.shape.num_kv_heads, group.length, kv.shape.head_dim).unbind(0)
    return keys, values


def _attend_tile(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, tile: Tile, rows: int, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """[R * kv heads, heads of a group * queries, D] -> the same shape."""
    keys, values = keys[:, tile.keys], values[:, tile.keys]
    scores = torch.baddbmm(query.new_empty(1, 1, 1), query, keys.transpose(1, 2), beta=0, alpha=scale)
    if softcap is not None:
        scores.div_(softcap).tanh_().mul_(softcap)
    if key_bias is not None:
        # The sum is float32, as the bias: that of late positions is large, and 16 bits beside it would not tell neighbours apart.
        scores = _biased(scores, rows, key_bias[:, None, tile.keys])
    if tile.mask is not None:
        count = tile.queries.stop - tile.queries.start
        scores.view(rows, -1, count, keys.shape[1])[..., tile.masked_from :].add_(tile.mask)
    weights = torch.softmax(scores, -1)
    return torch.bmm(weights if key_bias is None else weights.to(values.dtype), values)


def _biased(scores: torch.Tensor, rows: int, bias: torch.Tensor) -> torch.Tensor:
    """scores [R * kv heads, heads of a group * queries, keys], bias [H, 1, keys]."""
    return (scores.view(rows, bias.shape[0], -1, scores.shape[2]) + bias).view(scores.shape)
