"""GPTQ: rounding one input after the other, and letting the inputs that are still to come make up for each error.

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (2023), algorithm 1: with
H = X X^T of the inputs and U the upper Cholesky factor of H^-1, the error of input j, divided by U[j, j], is spread over the inputs
behind it in the proportions of row j of U.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from headway.compression.rounding import Grid, Rounded, nearest
from headway.errors import ArtifactError

BLOCK: Final = 128  # inputs whose errors are spread inside before those behind them hear of it
_MOST_DAMPING: Final = 1.0


@dataclass(frozen=True, slots=True)
class GptqSettings:
    """`damping`: part of the mean of H's diagonal that is added to it. `act_order`: inputs with the largest activations first; the groups
    stay those of neighbouring inputs, with scales taken before anything is rounded, so that no reader needs to know the order."""

    damping: float = 0.01
    act_order: bool = True


def gptq(weight: torch.Tensor, hessian: torch.Tensor, grid: Grid, settings: GptqSettings) -> Rounded:
    """`weight` float32 [out, in] and `hessian` [in, in], sums of products of inputs. Inputs that were always 0 are rounded to the nearest,
    and so is everything where no text reached the matrix. Raises ArtifactError (`activations_not_finite`)."""
    if not bool(hessian.diagonal().any()):
        return nearest(weight, grid)
    width = weight.shape[1]
    group = grid.group or width
    order = hessian.diagonal().argsort(descending=True, stable=True) if settings.act_order else torch.arange(width)
    factor = _factor(hessian[order][:, order], settings.damping)
    left = weight[:, order].clone()
    scales, zeros = grid.scales_of(weight)
    numbers = torch.empty_like(weight, dtype=torch.int8)
    for start in range(0, width, BLOCK):
        stop = min(start + BLOCK, width)
        errors = torch.empty(len(weight), stop - start)
        for place in range(start, stop):
            index = int(order[place])
            at = index // group
            if not settings.act_order and index % group == 0:
                # What is still to come was changed by now: its range is that of the weights that will be rounded.
                _renew(scales, zeros, at, grid, left[:, place : place + group])
            scale, zero = scales[:, at : at + 1], None if zeros is None else zeros[:, at : at + 1]
            column = left[:, place : place + 1]
            number = grid.numbers_of(column, scale, zero)
            numbers[:, index : index + 1] = number
            kept = (number.float() - (0.0 if zero is None else zero.float())) * scale
            error = (column - kept) / factor[place, place]
            left[:, place:stop] -= error * factor[place, place:stop]
            errors[:, place - start : place - start + 1] = error
        left[:, stop:] -= errors @ factor[start:stop, stop:]
    return Rounded(numbers, scales, zeros)


def _renew(scales: torch.Tensor, zeros: torch.Tensor | None, at: int, grid: Grid, group: torch.Tensor) -> None:
    fresh, fresh_zeros = grid.scales_of(group)
    scales[:, at : at + 1] = fresh
    if zeros is not None and fresh_zeros is not None:
        zeros[:, at : at + 1] = fresh_zeros


def _factor(hessian: torch.Tensor, damping: float) -> torch.Tensor:
    """Upper Cholesky factor of the inverse, with as little damping as makes it exist."""
    mean = hessian.diagonal().mean()
    while True:
        damped = hessian.clone()
        damped.diagonal().add_(damping * mean)
        lower, failed = torch.linalg.cholesky_ex(damped)
        if not int(failed):
            upper: torch.Tensor
            upper, failed = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
            if not int(failed):
                return upper
        if damping >= _MOST_DAMPING:  # its diagonal outweighs the rest: only numbers that are not finite come here
            raise ArtifactError(
                "the activations of a layer are not finite", reason="activations_not_finite", param="model",
                fix="The weights are damaged, or the model overflows: see whether `headway serve` gives sensible text.",
            )  # fmt: skip
        damping = min(damping * 10, _MOST_DAMPING) or 0.01
