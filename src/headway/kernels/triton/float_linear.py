"""Linear layers of floats: the weight as it came, on the device, multiplied by its own library (cuBLAS)."""

from __future__ import annotations

import torch

from headway.kernels.reference import PlainLinear


def pack_linear(device: torch.device, weight: torch.Tensor, bias: torch.Tensor | None) -> PlainLinear:
    """weight [out, in], bias [out] or None."""
    return PlainLinear(weight.to(device), None if bias is None else bias.to(device))
