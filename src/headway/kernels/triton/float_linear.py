"""Linear layers of floats: the weight as it came, on the device, multiplied by its own library (cuBLAS)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from headway.kernels.interface import Activation
from headway.kernels.torch_pointwise import ACTIVATIONS


@dataclass(frozen=True, slots=True)
class DeviceLinear:
    """weight [out, in], bias [out] or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x).float()

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self(x))

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """With the product rounded before the sum."""
        return residual + self(x)


def pack_linear(device: torch.device, weight: torch.Tensor, bias: torch.Tensor | None) -> DeviceLinear:
    return DeviceLinear(weight.to(device), None if bias is None else bias.to(device))
