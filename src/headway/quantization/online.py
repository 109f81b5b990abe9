"""Formats that are made while an unquantized checkpoint is loaded: which numbers each of them can hold.

Until there are kernels that compute with packed weights, a matrix is rounded to these numbers and kept in the dtype of the model.
fp8: float8 e4m3 with one scale for the matrix, largest / 448. int8: a scale for each output, largest / 127. int4: a scale for each 128
inputs of an output, largest / 7.5, and numbers from -8 to 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch

_GROUP: Final = 128


def _fp8(weight: torch.Tensor) -> torch.Tensor:
    scale = _scale(weight.abs().amax(), 448.0)
    return (weight / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn).float() * scale


def _int8(weight: torch.Tensor) -> torch.Tensor:
    scale = _scale(weight.abs().amax(-1, keepdim=True), 127.0)
    return torch.round(weight / scale).clamp(-127.0, 127.0) * scale


def _int4(weight: torch.Tensor) -> torch.Tensor:
    groups = []
    for group in torch.split(weight, _GROUP, -1):
        scale = _scale(group.abs().amax(-1, keepdim=True), 7.5)
        groups.append(torch.round(group / scale).clamp(-8.0, 7.0) * scale)
    return torch.cat(groups, -1)


def _scale(largest: torch.Tensor, most: float) -> torch.Tensor:
    """1 for a matrix of zeros."""
    return torch.where(largest > 0, largest / most, 1.0)


ROUNDINGS: Final[Mapping[str, Callable[[torch.Tensor], torch.Tensor]]] = {"fp8": _fp8, "int8": _int8, "int4": _int4}


def round_weight(weight: torch.Tensor, method: str) -> None:
    """Replace a matrix [out, in], in its own dtype, by what `method` keeps of it."""
    weight.copy_(ROUNDINGS[method](weight.float()))
