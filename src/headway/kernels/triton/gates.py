"""Gated activations: act(gate) * up in float32, rounded once."""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from triton.language import tensor

_BLOCK: Final = 1024
_SILU: Final = tl.constexpr(0)
_GELU: Final = tl.constexpr(1)
_GELU_TANH: Final = tl.constexpr(2)


@triton.jit
def _gate(
    out: tensor, gate_up: tensor, row_stride: tensor, width: tensor, KIND: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    gate = tl.load(gate_up + row * row_stride + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * row_stride + width + columns, mask=inside, other=0.0).to(tl.float32)
    if KIND == _SILU:
        active = gate * tl.sigmoid(gate)
    elif KIND == _GELU:
        active = gate * 0.5 * (1.0 + tl.erf(gate * 0.7071067811865476))
    else:  # 0.5 * (1 + tanh(z)) = sigmoid(2 z), z = sqrt(2 / pi) * (x + 0.044715 x^3)
        active = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
    tl.store(out + row * width + columns, (active * up).to(out.dtype.element_ty), mask=inside)


def silu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    return _gated(gate_up, _SILU)


def gelu_gate(gate_up: torch.Tensor) -> torch.Tensor:
    return _gated(gate_up, _GELU)


def gelu_tanh_gate(gate_up: torch.Tensor) -> torch.Tensor:
    return _gated(gate_up, _GELU_TANH)


def _gated(gate_up: torch.Tensor, kind: Any) -> torch.Tensor:
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    whole = gate_up if gate_up.stride(1) == 1 else gate_up.contiguous()
    out = torch.empty(rows, width, dtype=gate_up.dtype, device=gate_up.device)
    if rows:
        block = min(_BLOCK, triton.next_power_of_2(width))
        _gate[(rows, triton.cdiv(width, block))](out, whole, whole.stride(0), width, KIND=kind.value, BLOCK=block)
    return out
