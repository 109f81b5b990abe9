"""Norms in one pass over a row: RMSNorm, alone and added to the residual stream, LayerNorm, and both of every head in place."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import tensor


@triton.jit
def _rms_norm(
    out: tensor, x: tensor, weight: tensor, residual: tensor, heads: tensor, x_token: tensor, x_head: tensor, out_token: tensor,
    out_head: tensor, weight_head: tensor, residual_token: tensor, width: tensor, epsilon: tensor, scale: tensor, WIDTH: tl.constexpr,
    WIDE: tl.constexpr, ADDED: tl.constexpr,
) -> None:  # fmt: skip
    token, head = tl.program_id(0).to(tl.int64) // heads, tl.program_id(0) % heads
    columns = tl.arange(0, WIDTH)
    inside = columns < width
    numbers = tl.load(x + token * x_token + head * x_head + columns, mask=inside, other=0.0).to(tl.float32)
    factors = tl.load(weight + head * weight_head + columns, mask=inside, other=0.0).to(tl.float32)
    normed = numbers * tl.rsqrt(tl.sum(numbers * numbers, 0) / width + epsilon)
    if not WIDE:  # as transformers: what a weight of the same dtype multiplies is rounded before
        normed = normed.to(out.dtype.element_ty).to(tl.float32)
    result = (normed * factors).to(out.dtype.element_ty)
    if ADDED:
        stream = tl.load(residual + token * residual_token + columns, mask=inside, other=0.0).to(tl.float32)
        result = (stream + result.to(tl.float32) * scale).to(out.dtype.element_ty)
    tl.store(out + token * out_token + head * out_head + columns, result, mask=inside)


@triton.jit
def _layer_norm(
    out: tensor, x: tensor, weight: tensor, bias: tensor, heads: tensor, x_token: tensor, x_head: tensor, out_token: tensor,
    out_head: tensor, weight_head: tensor, width: tensor, epsilon: tensor, WIDTH: tl.constexpr, BIASED: tl.constexpr,
) -> None:  # fmt: skip
    token, head = tl.program_id(0).to(tl.int64) // heads, tl.program_id(0) % heads
    columns = tl.arange(0, WIDTH)
    inside = columns < width
    numbers = tl.load(x + token * x_token + head * x_head + columns, mask=inside, other=0.0).to(tl.float32)
    factors = tl.load(weight + head * weight_head + columns, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, numbers - tl.sum(numbers, 0) / width, 0.0)
    result = centred * tl.rsqrt(tl.sum(centred * centred, 0) / width + epsilon) * factors
    if BIASED:
        result += tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + token * out_token + head * out_head + columns, result.to(out.dtype.element_ty), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    rows = _rows(x)
    out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    _launch_rms(out[:, None], rows[:, None], weight[None], None, epsilon, 1.0)
    return out.view(x.shape)


def add_rms_norm(residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float, scale: float) -> torch.Tensor:
    rows, stream = _rows(x), _rows(residual)
    out = torch.empty(rows.shape, dtype=residual.dtype, device=x.device)
    _launch_rms(out[:, None], rows[:, None], weight[None], stream, epsilon, scale)
    return out.view(x.shape)


def norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """x_ [T, heads, D], of which the numbers of a head lie side by side."""
    _launch_rms(x, x, weight, None, epsilon, 1.0)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    rows = _rows(x)
    out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    _launch_layer(out[:, None], rows[:, None], weight[None], bias, epsilon)
    return out.view(x.shape)


def layer_norm_heads(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """x_ [T, heads, D], of which the numbers of a head lie side by side."""
    _launch_layer(x, x, weight, None, epsilon)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """[..., n] -> [T, n], the numbers of a row side by side."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()


def _launch_rms(
    out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor | None, epsilon: float, scale: float
) -> None:
    """out and x [T, heads, n], weight [heads, n], residual [T, n] with one head."""
    tokens, heads, width = x.shape
    if tokens:
        _rms_norm[(tokens * heads,)](
            out, x, weight, x if residual is None else residual, heads, x.stride(0), x.stride(1), out.stride(0), out.stride(1),
            weight.stride(0), 0 if residual is None else residual.stride(0), width, epsilon, scale, WIDTH=triton.next_power_of_2(width),
            WIDE=weight.dtype == torch.float32, ADDED=residual is not None,
        )  # fmt: skip


def _launch_layer(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, epsilon: float) -> None:
    """out and x [T, heads, n], weight [heads, n], bias [n] with one head."""
    tokens, heads, width = x.shape
    if tokens:
        _layer_norm[(tokens * heads,)](
            out, x, weight, x if bias is None else bias, heads, x.stride(0), x.stride(1), out.stride(0), out.stride(1), weight.stride(0),
            width, epsilon, WIDTH=triton.next_power_of_2(width), BIASED=bias is not None,
        )  # fmt: skip
