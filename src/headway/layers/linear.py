"""Linear: a matrix in whatever layout the kernels prefer; also several matrices that read the same input, fused."""

from __future__ import annotations

import torch

from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.integer_weight import IntegerMatrix
from headway.kernels.interface import Kernels, PackedLinear


class Linear:
    """y = x W^T + b. Fused projections (query, key and value; gate and up) are their rows one below the other."""

    __slots__ = ("_kernels", "packed")

    packed: PackedLinear

    def __init__(self, kernels: Kernels):
        self._kernels = kernels

    def load(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        """Pack `weight` [out, in], `bias` [out]; the caller drops its own copy."""
        self.packed = self._kernels.pack_linear(weight, bias)

    def load_integers(self, matrix: IntegerMatrix, bias: torch.Tensor | None = None) -> None:
        """`load` of a matrix in a form that the kernels compute with."""
        assert self._kernels.integers is not None
        self.packed = self._kernels.integers.pack(matrix, bias)

    def load_float8(self, matrix: Float8Matrix, bias: torch.Tensor | None = None) -> None:
        """`load` of a matrix of 8-bit floats."""
        assert self._kernels.float8 is not None
        self.packed = self._kernels.float8.pack(matrix, bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[T, in] -> [T, out]."""
        return self.packed(x)
