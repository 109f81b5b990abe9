"""Matrices of 8-bit floats with a scale for each output: w[o, i] = scales[o] * codes[o, i]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

LARGEST: Final = 448.0  # of float8 e4m3


@dataclass(frozen=True, slots=True)
class Float8Matrix:
    """codes float8 e4m3 [out, in], scales float32 [out]."""

    codes: torch.Tensor
    scales: torch.Tensor

    @staticmethod
    def of(weight: torch.Tensor, rows: Sequence[int]) -> Float8Matrix:
        """weight [out, in], whose parts of `rows` rows have a scale each: their largest magnitude / 448. Numbers that were rounded to such codes
        before get them back."""
        codes, scales = [], []
        for part in torch.split(weight.float(), list(rows)):
            largest = part.abs().amax()
            scale = torch.where(largest > 0, largest / LARGEST, 1.0)
            codes.append((part / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn))
            scales.append(scale.expand(len(part)))
        return Float8Matrix(torch.cat(codes), torch.cat(scales))
