"""Kernels in plain torch, one sequence at a time, in float32: slow, short, and the definition of right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F

from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Activation, Kernels, PackedLinear
from headway.kernels.paged_kv import PagedKV
from headway.kernels.rotation_and_store import one_after_the_other
from headway.kernels.row_groups import RowGroup
from headway.kernels.torch_sampling import TORCH_SAMPLING


@dataclass(frozen=True, slots=True)
class PlainLinear:
    """The weight as it came."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x).float()

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self(x))

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return residual + self(x)


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    return PlainLinear(weight, bias)


def embed(table: torch.Tensor, ids: torch.Tensor, scale: float) -> torch.Tensor:
    return (F.embedding(ids, table).float() * scale).to(table.dtype)


def add_rows(x: torch.Tensor, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x + F.embedding(index, table)


def select_rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x.index_select(0, index)


def add_scaled(residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
    return (residual.float() + x.float() * scale).to(residual.dtype)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    wide = x.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    if weight.dtype == torch.float32:
        return (normed * weight).to(x.dtype)
    return normed.to(x.dtype) * weight


def add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float, scale: float
) -> torch.Tensor:
    return add_scaled(residual, rms_norm(x, weight, epsilon), scale)


def norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    x.copy_(rms_norm(x, weight, epsilon))


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    normed = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + epsilon) * weight.float()
    return (normed if bias is None else normed + bias.float()).to(x.dtype)


def layer_norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    x.copy_(layer_norm(x, weight, None, epsilon))


def rotary_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, factor: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    angles = (positions.float()[:, None] * frequencies).repeat(1, 2)[:, None]
    sign = torch.ones_like(angles[:1])
    sign[..., : len(frequencies)] = -1
    return (angles.cos() * factor).to(dtype), (angles.sin() * factor * sign).to(dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    first, second = x.float().chunk(2, -1)
    x.copy_(x.float() * cos + torch.cat((second, first), -1) * sin)


def silu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.float().chunk(2, -1)
    return (F.silu(gate) * up).to(gate_up.dtype)


def gelu_tanh_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.float().chunk(2, -1)
    return (F.gelu(gate, approximate="tanh") * up).to(gate_up.dtype)


def gelu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return (gelu(gate.float()) * up.float()).to(gate_up.dtype)


def silu(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide / (1 + torch.exp(-wide))).to(x.dtype)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """x times the normal distribution's probability of less (Hendrycks and Gimpel, arXiv 1606.08415)."""
    wide = x.float()
    return (wide * 0.5 * (1 + torch.erf(wide / math.sqrt(2)))).to(x.dtype)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """The approximation of the same paper."""
    wide = x.float()
    return (wide * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))).to(x.dtype)


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x))


ACTIVATIONS: Final[Mapping[Activation, Callable[[torch.Tensor], torch.Tensor]]] = {"silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh, "relu": relu}


def plan(batch: ForwardBatch, kv: PagedKV, num_heads: int, windows: frozenset[int | None]) -> ForwardBatch:
    return batch


def store(rows: torch.Tensor, kv: PagedKV, layer: int, batch: ForwardBatch) -> None:
    blocks, offsets = batch.slots // kv.block_size, batch.slots % kv.block_size
    for i, part in enumerate(rows.transpose(0, 1).chunk(2)):
        if kv.scales:
            largest = part.float().abs().amax(-1)
            kv.scales[layer][i][:, blocks, offsets] = largest / 127
            part = (part.float() * (127 / largest)[..., None]).nan_to_num(0).round()
        kv.layers[layer][i][:, blocks, offsets] = part.to(kv.dtype)


def _stored(kv: PagedKV, layer: int, table: torch.Tensor, length: int) -> Iterator[torch.Tensor]:
    """Keys, then values of a sequence in these blocks, float32 [K, length, D]."""
    for i, part in enumerate(kv.layers[layer]):
        found = part[:, table].float()
        if kv.scales:
            found = found * kv.scales[layer][i][:, table, :, None]
        yield found.flatten(1, 2)[:, :length]


def attend(
    query: torch.Tensor, kv: PagedKV, layer: int, batch: ForwardBatch, window: int | None, scale: float,
    softcap: float | None, key_bias: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    out = torch.empty(query.shape[0], query.shape[1] * query.shape[2], dtype=query.dtype)
    group = query.shape[1] // kv.shape.num_kv_heads
    start = 0
    for i, (count, length) in enumerate(zip(batch.query_lens.tolist(), batch.context_lens.tolist(), strict=True)):
        table = torch.from_numpy(batch.block_tables[i, : -(-length // kv.block_size)].astype(np.int64))
        keys, values = _stored(kv, layer, table, length)
        positions = torch.arange(length - count, length)[:, None]
        others = torch.arange(length)[None]
        hidden = (others > positions) | (others <= positions - (window or length))
        scores = query[start : start + count].float().transpose(0, 1) @ keys.repeat_interleave(group, 0).transpose(1, 2)
        scores = scores * scale
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if key_bias is not None:
            scores = scores + key_bias[:, None, :length]
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        mixed = weights @ values.repeat_interleave(group, 0)
        out[start : start + count] = mixed.transpose(0, 1).flatten(1).to(query.dtype)
        start += count
    return out


def attend_rows(
    qkv: torch.Tensor, groups: Sequence[RowGroup], heads: int, reach: int | None, scale: float, bias: torch.Tensor | None
) -> torch.Tensor:
    out = qkv.new_empty(qkv.shape[0], heads * qkv.shape[2])
    for group in groups:
        places = torch.arange(group.length)
        hidden = (places[:, None] - places).abs() > (group.length if reach is None else reach)
        for start in range(group.start, group.start + group.rows * group.length, group.length):
            query, key, value = qkv[start : start + group.length].float().transpose(0, 1).chunk(3)
            scores = query @ key.transpose(1, 2) * scale
            if bias is not None:
                scores = scores + bias[:, : group.length, : group.length]
            mixed = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ value
            out[start : start + group.length] = mixed.transpose(0, 1).flatten(1).to(out.dtype)
    return out


def finish_logits(logits: torch.Tensor, divisor: float | None, softcap: float | None) -> torch.Tensor:
    wide = logits.float() / (divisor or 1.0)
    return wide if softcap is None else softcap * torch.tanh(wide / softcap)


REFERENCE = Kernels(
    name="reference", embed=embed, add_rows=add_rows, select_rows=select_rows, add_scaled=add_scaled, pack_linear=pack_linear, rms_norm=rms_norm, add_rms_norm=add_rms_norm, norm_heads=norm_heads, rotate=rotate, silu_gate=silu_gate,
    gelu_tanh_gate=gelu_tanh_gate, gelu_gate=gelu_gate, layer_norm=layer_norm, layer_norm_heads=layer_norm_heads, activations=ACTIVATIONS,
    rotary_tables=rotary_tables, finish_logits=finish_logits, plan=plan, store=store, rotate_and_store=one_after_the_other(rotate, store), attend=attend, attend_rows=attend_rows, sampling=TORCH_SAMPLING, quantized_cache=True,
)  # fmt: skip
