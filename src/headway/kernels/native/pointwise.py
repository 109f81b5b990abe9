"""Norms, gates and rotation by native kernels: checks of shapes here, arithmetic in csrc/kernels."""

from __future__ import annotations

import torch

from headway.kernels.native.tape import Tape

DTYPES = {torch.float32: 0, torch.bfloat16: 1}


def rms_norm(tape: Tape, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """x [..., n], of which the last dimension is contiguous."""
    width = x.shape[-1]
    rows = x.view(-1, width)
    out = tape.empty(*x.shape, dtype=x.dtype)
    tape.sink.rms_norm(
        out.data_ptr(), rows.data_ptr(), weight.data_ptr(), rows.shape[0], width, width, rows.stride(0), epsilon, DTYPES[x.dtype],
        weight.dtype != x.dtype,
    )  # fmt: skip
    return out
