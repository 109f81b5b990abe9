"""What a matrix is fed with, in as little memory as any number of tokens allows: sums over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class InputSums:
    """Of inputs x [tokens, in]: `products` = sum of x x^T, float32 [in, in]; `sizes` = sum of |x|, float32 [in]."""

    width: int
    tokens: int = 0
    products: torch.Tensor = field(init=False)
    sizes: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.products = torch.zeros(self.width, self.width)
        self.sizes = torch.zeros(self.width)

    def add(self, inputs: torch.Tensor) -> None:
        """`inputs` float32 [..., in]"""
        rows = inputs.reshape(-1, self.width)
        self.tokens += len(rows)
        self.products.addmm_(rows.t(), rows)
        self.sizes += rows.abs().sum(0)

    def energy(self, weight: torch.Tensor) -> float:
        """Sum over tokens and outputs of (weight x)^2, for `weight` [out, in]."""
        return float(((weight @ self.products) * weight).sum().clamp_min(0.0))


def relative_error(kept: torch.Tensor, weight: torch.Tensor, sums: InputSums | None) -> float:
    """How far a matrix is from the original: of its outputs on the texts, or of its weights where there were no texts. As a part of
    the original, root mean square."""
    difference = kept - weight
    if sums is not None and sums.tokens:
        found, whole = sums.energy(difference), sums.energy(weight)
    else:
        found, whole = float(difference.square().sum()), float(weight.square().sum())
    return float((found / whole) ** 0.5) if whole > 0 else 0.0
