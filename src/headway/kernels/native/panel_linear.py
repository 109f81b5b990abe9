"""What linear layers with weights in panels (csrc/kernels/linear.h) have in common: their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Literal

import torch

from headway.kernels.interface import Activation
from headway.kernels.native.tape import Tape

PANEL_WIDTH: Final = 32  # channels
DTYPES: Final = {torch.float32: 0, torch.bfloat16: 1}
_MaybeActivation = Activation | Literal["none"]
_ACTIVATIONS: Final[dict[_MaybeActivation, int]] = {"none": -1, "silu": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3}

Output = tuple[int, int, int, int, int, int, int, int]  # LinearOutput, for the sink


class PanelLinear(ABC):
    """Results are sums in float32, rounded once. Rows of x and of a residual may be apart, their numbers are neighbours."""

    __slots__ = ("_bias", "_inputs", "_tape", "_width")

    def __init__(self, tape: Tape, width: int, inputs: int, bias: torch.Tensor | None):
        self._tape = tape
        self._width = width
        self._inputs = inputs
        self._bias = None if bias is None else bias.float().contiguous()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._run(x, None, "none", x.dtype)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self._run(x, None, "none", torch.float32)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        return self._run(x, None, activation, x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._run(x, residual, "none", residual.dtype)

    @abstractmethod
    def _multiply(self, output: Output, x: torch.Tensor) -> None:
        """Write what `output` says."""

    def _run(self, x: torch.Tensor, residual: torch.Tensor | None, activation: _MaybeActivation, dtype: torch.dtype) -> torch.Tensor:
        width, bias = self._width, self._bias
        out = self._tape.empty(x.shape[0], width, dtype=dtype)
        residual_at, residual_stride = (0, 0) if residual is None else (residual.data_ptr(), residual.stride(0))
        bias_at = 0 if bias is None else bias.data_ptr()
        output = (out.data_ptr(), bias_at, residual_at, width, width, residual_stride, DTYPES[dtype], _ACTIVATIONS[activation])
        self._multiply(output, x)
        return out
