"""Norms, rotation and gates with as few operator calls as torch allows: a call costs more than the arithmetic at batch 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import torch
import torch.nn.functional as F

from headway.kernels.interface import Activation

ACTIVATIONS: Final[Mapping[Activation, Callable[[torch.Tensor], torch.Tensor]]] = {
    "silu": F.silu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh"), "relu": F.relu,
}  # fmt: skip


def embed(table: torch.Tensor, ids: torch.Tensor, scale: float) -> torch.Tensor:
    rows = F.embedding(ids, table)
    return rows if scale == 1.0 else rows.mul_(scale)


def add_scaled(residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.add(residual, x, alpha=scale)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    if weight.dtype != x.dtype:
        return F.rms_norm(x.float(), weight.shape, weight, epsilon).to(x.dtype)
    if x.shape[0] == 1:
        # The mean of [x, -x] is zero, so its LayerNorm is the RMSNorm of x, and torch has a fused kernel for that one:
        # 23 us instead of 39 us in the middle of a step, 61 times a step.
        both = torch.cat((x, x.neg()), -1)
        return torch.layer_norm(both, both.shape[-1:], None, None, epsilon).narrow(-1, 0, x.shape[-1]) * weight
    return F.rms_norm(x, weight.shape, weight, epsilon)


def add_rms_norm(
    residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float, scale: float
) -> torch.Tensor:
    return add_scaled(residual, rms_norm(x, weight, epsilon), scale)


def norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    if weight.dtype != x.dtype:
        x.copy_(F.rms_norm(x.float(), x.shape[-1:], None, epsilon).mul_(weight))
    else:
        torch.mul(F.rms_norm(x, x.shape[-1:], None, epsilon), weight, out=x)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    return torch.layer_norm(x, weight.shape, weight, bias, epsilon)


def layer_norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    # Rounds twice in 16 bits: torch has no LayerNorm with a weight for each row.
    torch.mul(torch.layer_norm(x, x.shape[-1:], None, None, epsilon), weight, out=x)


def rotary_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, factor: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    angles = positions.float()[:, None] * frequencies
    return tables_of(angles.cos(), angles.sin(), factor, dtype)


def tables_of(cos: torch.Tensor, sin: torch.Tensor, factor: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [T, n] of the angles -> both as `Kernels.rotary_tables` gives them."""
    if factor != 1.0:
        cos, sin = cos * factor, sin * factor
    both = torch.cat((cos, cos, -sin, sin), -1).to(dtype)[:, None]
    first, second = both.chunk(2, -1)
    return first, second


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    # roll brings the partner of every element to its place; the sign is in sin.
    partners = x.roll(x.shape[-1] // 2, -1)
    torch.addcmul(x * cos, partners, sin, out=x)


def silu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate).mul_(up)


def gelu_tanh_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return F.gelu(gate, approximate="tanh").mul_(up)


def gelu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    return F.gelu(gate).mul_(up)


def finish_logits(logits: torch.Tensor, divisor: float | None, softcap: float | None) -> torch.Tensor:
    logits = logits.float()
    if divisor is not None:
        logits.div_(divisor)
    return logits if softcap is None else logits.div_(softcap).tanh_().mul_(softcap)
