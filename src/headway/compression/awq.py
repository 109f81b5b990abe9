"""AWQ: inputs that carry much are scaled up before their weights are rounded, and scaled down where they come from.

Lin et al., "AWQ: Activation-aware Weight Quantization" (2024): s = (mean |x|)^a for each input, with the a of a grid that keeps the outputs
closest. Here closeness is the squared error of each matrix's outputs over all tokens, which follows from the sums of products of inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch

from headway.compression.folds import Fold
from headway.compression.input_sums import InputSums
from headway.compression.rounding import Grid, nearest

STEPS: Final = 20  # of the exponent, from 0 to 1
_ROWS: Final = 512  # outputs of a matrix that are looked at for an exponent: more of them choose no other
_LEAST: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Scaling:
    """`exponent` 0 = nothing is scaled. `inputs` [in] multiplies columns of the matrices, `outputs` divides the producer's rows."""

    exponent: float
    inputs: torch.Tensor
    outputs: torch.Tensor


def best_scaling(fold: Fold, weights: Mapping[str, torch.Tensor], sums: Mapping[str, InputSums], grid: Grid) -> Scaling:
    """`weights` float32 [out, in] and `sums` of the fold's matrices."""
    size = _size(fold, sums)
    best = _scaling(fold, size, 0.0)
    least = _error(fold, weights, sums, grid, best)
    for step in range(1, STEPS):
        tried = _scaling(fold, size, step / STEPS)
        error = _error(fold, weights, sums, grid, tried)
        if error < least:
            least, best = error, tried
    return best


def _size(fold: Fold, sums: Mapping[str, InputSums]) -> torch.Tensor:
    """Mean |x| of the producer's outputs: where heads share them, over those heads."""
    tokens = sum(sums[name].tokens for name in fold.matrices)
    whole = torch.stack([sums[name].sizes for name in fold.matrices]).sum(0) / max(tokens, 1)
    return whole.view(-1, fold.repeats, fold.head).mean(1).flatten()


def _scaling(fold: Fold, size: torch.Tensor, exponent: float) -> Scaling:
    scale = size.clamp_min(_LEAST).pow(exponent)
    scale /= (scale.max() * scale.min()).sqrt()  # about 1, so that the scales of groups stay in the range of their dtype
    inputs = scale.view(-1, 1, fold.head).expand(-1, fold.repeats, -1).flatten()
    return Scaling(exponent, inputs, scale)


def _error(fold: Fold, weights: Mapping[str, torch.Tensor], sums: Mapping[str, InputSums], grid: Grid, scaling: Scaling) -> float:
    total = 0.0
    for name in fold.matrices:
        weight = weights[name][:: -(-len(weights[name]) // _ROWS)]
        kept = nearest(weight * scaling.inputs, grid).weight() / scaling.inputs
        total += sums[name].energy(kept - weight)
    return total
