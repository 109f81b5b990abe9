"""What linear layers whose sums stay float32 until the end have in common: one rounding, to the dtype of the result."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from headway.kernels.interface import Activation
from headway.kernels.torch_pointwise import ACTIVATIONS


class WideLinear(ABC):
    """See `kernels.interface` for what each method computes."""

    __slots__ = ()

    @abstractmethod
    def widened(self, x: torch.Tensor) -> torch.Tensor:
        """[T, in] -> [T, out] float32, bias added, in memory that the caller may change."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.widened(x).to(x.dtype)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return ACTIVATIONS[activation](self.widened(x)).to(x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.widened(x).add_(residual).to(residual.dtype)
