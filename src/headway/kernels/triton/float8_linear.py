"""Linear layers in FP8 through torch's matrix product of 8-bit floats. Inputs are rounded to e4m3 too, with a scale for each token."""

from __future__ import annotations

from typing import Final

import torch

from headway.errors import ConfigError
from headway.kernels.float8_matrix import LARGEST, Float8Matrix
from headway.kernels.triton.wide_linear import WideLinear

_CAPABILITY: Final = (8, 9)  # the first with arithmetic for FP8 (Ada, Hopper)
_MULTIPLE: Final = 16  # what inputs and outputs must be a multiple of (cuBLAS)


class Float8Linear(WideLinear):
    """Sums are float32 and get both scales then, so that nothing is rounded but inputs and result."""

    __slots__ = ("_bias", "_codes", "_one", "_scales")

    def __init__(self, device: torch.device, matrix: Float8Matrix, bias: torch.Tensor | None):
        self._codes = matrix.codes.to(device)
        self._scales = matrix.scales.to(device)
        self._bias = None if bias is None else bias.float().to(device)
        self._one = torch.ones((), device=device)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        if not len(x):
            return torch.empty(0, len(self._codes), device=x.device)
        codes, scales = round_tokens(x)
        out: torch.Tensor = torch._scaled_mm(codes, self._codes.t(), self._one, self._one, out_dtype=torch.float32)
        out = out.mul_(scales).mul_(self._scales)
        return out if self._bias is None else out.add_(self._bias)


def round_tokens(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[T, in] -> codes float8 e4m3 [T, in] and scales float32 [T, 1]: a token's largest magnitude / 448. What is not finite gives NaN."""
    wide = x.float()
    largest = wide.abs().amax(-1, keepdim=True)
    scales = torch.where(largest == 0, 1.0, largest / LARGEST)
    return (wide / scales).to(torch.float8_e4m3fn), scales


def has_float8(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= _CAPABILITY


def can_multiply(out: int, width: int) -> bool:
    """Whether there is a product for matrices of this shape."""
    return out % _MULTIPLE == 0 and width % _MULTIPLE == 0


def pack_float8_linear(device: torch.device, matrix: Float8Matrix, bias: torch.Tensor | None) -> Float8Linear:
    """Raises ConfigError (`float8_unsupported`) for a device or a shape without FP8 products."""
    out, width = matrix.codes.shape
    if not has_float8(device) or not can_multiply(out, width):
        raise ConfigError(
            f"an FP8 matrix of {out} x {width} on {device}: products need a CUDA device of capability {_CAPABILITY[0]}.{_CAPABILITY[1]} or later"
            f" and sides that are multiples of {_MULTIPLE}",
            reason="float8_unsupported", param="quantization", fix="Leave --quantization fp8 out, or use another format.",
        )  # fmt: skip
    return Float8Linear(device, matrix, bias)
