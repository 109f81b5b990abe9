"""Weights that are not what the baseline has in their place: exchanged, overwritten, or no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from headway.evaluation.diagnosis.weight_samples import Place, WeightSample

_SAME: Final = 0.9
_OTHER: Final = 0.3
"""Likeness of a weight rounded to four bits with the original is about 0.99, to two bits 0.9; that of two weights of a model near 0."""
_SHOWN: Final = 4


def weights_without_numbers(samples: Sequence[WeightSample]) -> str | None:
    """A sentence, or None."""
    names = [sample.name for sample in samples if not sample.finite]
    if not names:
        return None
    return f"{len(names)} of {len(samples)} weights hold infinities or NaN: {_some(names)}. Make the file again, or download it again."


def exchanged_weights(samples: Sequence[WeightSample], base: Mapping[Place, WeightSample]) -> str | None:
    """A sentence, or None. Only weights that are in both and have the same shape are compared."""
    comparable = [sample for sample in samples if sample.place in base and base[sample.place].shape == sample.shape]
    strange = [sample for sample in comparable if likeness(sample.numbers, base[sample.place].numbers) < _OTHER]
    if not strange:
        return None
    moved = {}
    for sample in strange:
        others = [other for other in base.values() if other.shape == sample.shape and other.place != sample.place]
        best = max(others, key=lambda other: likeness(sample.numbers, other.numbers), default=None)
        if best is not None and likeness(sample.numbers, best.numbers) >= _SAME:
            moved[sample.name] = best.name
    if moved:
        pairs = [f"{name} holds what belongs to {other}" for name, other in moved.items()]
        return f"tensors are swapped: {_some(pairs)}. Make the checkpoint again: its names and weights do not belong together."
    if len(strange) > len(comparable) // 2:
        return f"{len(strange)} of {len(comparable)} weights have nothing in common with those of the baseline: this is another model."
    names = [sample.name for sample in strange]
    return f"{len(names)} of {len(comparable)} weights have nothing in common with those of the baseline: {_some(names)}. They were damaged or packed wrongly."


def likeness(one: torch.Tensor, other: torch.Tensor) -> float:
    """Correlation; 1 for equal constants."""
    a, b = (torch.nan_to_num(each - each.mean()) for each in (one, other))
    size = float(a.norm() * b.norm())
    if size == 0:
        return float(torch.allclose(one, other))
    return float(a @ b) / size


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
