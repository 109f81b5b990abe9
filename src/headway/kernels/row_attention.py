"""Attention of packed rows to themselves, in both directions.

Rows of one length go through one call without padding and without a mask, so what a row sees does not depend on its
neighbours. A layer that sees `reach` tokens to either side takes its queries in blocks, each over its own strip of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import torch
import torch.nn.functional as F

from headway.kernels.row_groups import RowGroup

# From here on strips pay: below it most scores of a strip would be masked.
_STRIPS_FROM: Final = 4


def attend_rows(
    qkv: torch.Tensor, groups: Sequence[RowGroup], heads: int, reach: int | None, scale: float, bias: torch.Tensor | None
) -> torch.Tensor:
    """See `Kernels.attend_rows`."""
    mixed = [_attend_group(qkv[group.tokens], group, heads, reach, scale, bias) for group in groups]
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed)


def _attend_group(
    qkv: torch.Tensor, group: RowGroup, heads: int, reach: int | None, scale: float, bias: torch.Tensor | None
) -> torch.Tensor:
    rows, length, size = group.rows, group.length, qkv.shape[-1]
    query, key, value = qkv.view(rows, length, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)
    if reach is None or length <= reach + 1:
        mask = None if bias is None else bias[:, :length, :length]
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    elif length < _STRIPS_FROM * reach:
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=_band(length, reach), scale=scale)
    else:
        mixed = _attend_strips(query, key, value, reach, scale)
    return mixed.transpose(1, 2).reshape(rows * length, heads * size)


def _attend_strips(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, reach: int, scale: float) -> torch.Tensor:
    """[R, H, L, D] each -> [R, H, L, D]. Blocks of 2 * reach queries over the 4 * reach keys around them."""
    rows, heads, length, size = query.shape
    block = 2 * reach
    count = -(-length // block)
    rest = count * block - length
    queries = F.pad(query, (0, 0, 0, rest)).view(rows, heads, count, block, size)
    keys, values = (
        F.pad(part, (0, 0, reach, rest + reach)).unfold(2, block + 2 * reach, block).transpose(3, 4) for part in (key, value)
    )
    joint = [part.transpose(1, 2).reshape(rows * count, heads, -1, size) for part in (queries, keys, values)]
    mask = _strip_masks(length, reach).repeat(rows, 1, 1, 1)
    mixed = F.scaled_dot_product_attention(joint[0], joint[1], joint[2], attn_mask=mask, scale=scale)
    joined = mixed.view(rows, count, heads, block, size).transpose(1, 2).reshape(rows, heads, count * block, size)
    return joined[:, :, :length]


@lru_cache(maxsize=16)
def _band(length: int, reach: int) -> torch.Tensor:
    """bool [L, L]."""
    places = torch.arange(length)
    return (places[:, None] - places).abs() <= reach


@lru_cache(maxsize=4)
def _strip_masks(length: int, reach: int) -> torch.Tensor:
    """bool [blocks, 1, 2 * reach, 4 * reach]. Queries beyond the end, which nobody reads, see one key of their strip at
    least: a row of nothing but masked scores has no softmax."""
    block = 2 * reach
    count = -(-length // block)
    queries = torch.arange(count)[:, None, None] * block + torch.arange(block)[None, :, None]
    keys = torch.arange(count)[:, None, None] * block - reach + torch.arange(block + 2 * reach)[None, None]
    seen = ((queries - keys).abs() <= reach) & (keys >= 0) & (keys < length)
    return (seen | ((queries >= length) & (queries == keys)))[:, None]
