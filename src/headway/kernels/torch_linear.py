"""Linear layers through oneDNN with weights packed once at load.

Measured (two Zen 4 cores, bf16, [M,576] x [576,3072], microseconds): F.linear 211 / 504 / 4552 at M = 1 / 32 / 512, packed
93 / 352 / 4355; float32 717 / 1176 / 12271 against 380 / 770 / 8457; with weights from memory, M = 1: 300 against 149.
The packing is not told a batch size, so that one copy serves all M: packed for M = 1 it was faster there (81), not elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch

from headway.kernels.interface import Activation, PackedLinear
from headway.kernels.reference import PlainLinear
from headway.kernels.torch_pointwise import ACTIVATIONS

_linear = torch.ops.mkldnn._linear_pointwise
# Activation -> what oneDNN calls it: operator and algorithm.
_FUSED: Final[Mapping[Activation, tuple[str, str]]] = {"gelu": ("gelu", "none"), "gelu_tanh": ("gelu", "tanh"), "relu": ("relu", "")}


@dataclass(frozen=True, slots=True)
class OneDnnLinear:
    """`packed` is opaque: only the oneDNN operators read it."""

    packed: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _linear(x, self.packed, self.bias, "none", [], "")  # type: ignore[no-any-return]

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self(x).float()

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        fused = _FUSED.get(activation)
        if fused is None:
            return ACTIVATIONS[activation](self(x))
        return _linear(x, self.packed, self.bias, fused[0], [], fused[1])  # type: ignore[no-any-return]

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return _linear.binary(x, residual, self.packed, self.bias, "add")  # type: ignore[no-any-return]


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    """Pack for oneDNN where it has fast arithmetic for the dtype; otherwise keep the plain weight."""
    if not can_pack(weight.dtype):
        return PlainLinear(weight, bias)
    return OneDnnLinear(torch.ops.mkldnn._reorder_linear_weight(weight, None), bias)


def can_pack(dtype: torch.dtype) -> bool:
    """float32 always packs when torch has oneDNN, bfloat16 when the processor has AVX-512 as well."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32
