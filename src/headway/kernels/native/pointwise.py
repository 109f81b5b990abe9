"""Norms, rotation, activations and moves of rows by native kernels: addresses and strides here, arithmetic in csrc/kernels.

Tensors are float32 or bfloat16, and the last dimension is contiguous; where more is asked it is said. Addresses of a recorded call stay
those of the tensors that it was recorded with.
"""

from __future__ import annotations

from typing import Final

import torch

from headway.kernels.interface import Activation
from headway.kernels.native.tape import Tape

DTYPES: Final = {torch.float32: 0, torch.bfloat16: 1}
_ACTIVATIONS: Final[dict[Activation, int]] = {"silu": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3}


def rms_norm(tape: Tape, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """x [..., n] without gaps, or [T, n] with."""
    return _norm(tape, x, weight, None, None, epsilon, 1.0, layer=False)


def add_rms_norm(
    tape: Tape, residual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float, scale: float
) -> torch.Tensor:
    """residual and x [T, n] without gaps."""
    return _norm(tape, x, weight, None, residual, epsilon, scale, layer=False)


def layer_norm(tape: Tape, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    """x [..., n] without gaps, or [T, n] with."""
    return _norm(tape, x, weight, bias, None, epsilon, 1.0, layer=True)


def _norm(
    tape: Tape, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, epsilon: float,
    scale: float, *, layer: bool,
) -> torch.Tensor:  # fmt: skip
    width = x.shape[-1]
    rows = x if x.dim() == 2 else x.reshape(-1, width)
    out = tape.empty(*x.shape, dtype=x.dtype)
    tape.sink.norm(
        out.data_ptr(), rows.data_ptr(), weight.data_ptr(), 0 if bias is None else bias.data_ptr(),
        0 if residual is None else residual.data_ptr(), rows.shape[0], 1, width, width, rows.stride(0), epsilon, scale, DTYPES[x.dtype], weight.dtype != x.dtype, layer,
    )  # fmt: skip
    return out


def norm_heads(tape: Tape, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """x_ [T, heads, D], the heads of a token side by side."""
    _norm_heads(tape, x, weight, epsilon, layer=False)


def layer_norm_heads(tape: Tape, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """x_ [T, heads, D], the heads of a token side by side."""
    _norm_heads(tape, x, weight, epsilon, layer=True)


def _norm_heads(tape: Tape, x: torch.Tensor, weight: torch.Tensor, epsilon: float, *, layer: bool) -> None:
    rows, heads, width = x.shape
    at = x.data_ptr()
    tape.sink.norm(
        at, at, weight.data_ptr(), 0, 0, rows, heads, width, x.stride(0), x.stride(0), epsilon, 1.0, DTYPES[x.dtype],
        weight.dtype != x.dtype, layer,
    )  # fmt: skip


def rotary_tables(
    tape: Tape, positions: torch.Tensor, frequencies: torch.Tensor, factor: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, half = positions.shape[0], frequencies.shape[0]
    cos, sin = (tape.empty(rows, 1, 2 * half, dtype=dtype) for _ in range(2))
    tape.sink.rotary_tables(
        cos.data_ptr(), sin.data_ptr(), positions.data_ptr(), frequencies.data_ptr(), rows, half, factor, DTYPES[dtype]
    )
    return cos, sin


def rotate(tape: Tape, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    rows, heads, width = x.shape
    tape.sink.rotate(
        x.data_ptr(), cos.data_ptr(), sin.data_ptr(), rows, heads, width // 2, x.stride(0), x.stride(1), cos.stride(0), DTYPES[x.dtype]
    )


def gate(tape: Tape, activation: Activation, gate_up: torch.Tensor) -> torch.Tensor:
    """[T, 2n] -> activation(first half) * second half."""
    return _activate(tape, activation, gate_up, gate_up.shape[-1] // 2)


def activate(tape: Tape, activation: Activation, x: torch.Tensor) -> torch.Tensor:
    """x [T, n]."""
    return _activate(tape, activation, x, x.shape[-1])


def _activate(tape: Tape, activation: Activation, x: torch.Tensor, width: int) -> torch.Tensor:
    rows = x.shape[0]
    out = tape.empty(rows, width, dtype=x.dtype)
    tape.sink.activate(
        out.data_ptr(), x.data_ptr(), rows, width, width, x.stride(0), _ACTIVATIONS[activation], DTYPES[x.dtype], width != x.shape[-1]
    )
    return out


def embed(tape: Tape, table: torch.Tensor, index: torch.Tensor, scale: float) -> torch.Tensor:
    return _gather(tape, table, None, index, scale)


def add_rows(tape: Tape, x: torch.Tensor, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return _gather(tape, table, x, index, 1.0)


def select_rows(tape: Tape, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return _gather(tape, x, None, index, 1.0)


def _gather(tape: Tape, table: torch.Tensor, added: torch.Tensor | None, index: torch.Tensor, scale: float) -> torch.Tensor:
    rows, width = index.shape[0], table.shape[1]
    out = tape.empty(rows, width, dtype=table.dtype)
    tape.sink.gather(
        out.data_ptr(), table.data_ptr(), 0 if added is None else added.data_ptr(), index.data_ptr(), tape.wrong_row_address, rows, width,
        table.shape[0], table.stride(0), scale, DTYPES[table.dtype],
    )  # fmt: skip
    tape.refuse_wrong_row(table.shape[0])
    return out


def add_scaled(tape: Tape, residual: torch.Tensor, x: torch.Tensor, scale: float) -> torch.Tensor:
    """Both without gaps."""
    out = tape.empty(*residual.shape, dtype=residual.dtype)
    tape.sink.add_scaled(
        out.data_ptr(), residual.data_ptr(), x.data_ptr(), residual.shape[0], residual.numel() // max(1, residual.shape[0]), scale,
        DTYPES[residual.dtype],
    )  # fmt: skip
    return out


def finish_logits(tape: Tape, logits: torch.Tensor, divisor: float | None, softcap: float | None) -> torch.Tensor:
    rows, width = logits.shape
    if logits.dtype == torch.float32 and divisor is None and softcap is None:
        return logits
    out = logits if logits.dtype == torch.float32 else tape.empty(rows, width, dtype=torch.float32)
    tape.sink.finish_logits(
        out.data_ptr(), logits.data_ptr(), rows, width, out.stride(0), logits.stride(0), divisor or 1.0, softcap or 0.0, DTYPES[logits.dtype]
    )
    return out
