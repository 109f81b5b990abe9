"""Some numbers of every weight of a model, in the same places whatever the file format: enough to tell matrices apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch

from headway.evaluation.scoring import Progress
from headway.models.native import NativePlan
from headway.models.weight_transforms import TRANSFORMS
from headway.quantization.weight_reader import WeightReader

_NUMBERS: Final = 4096
_WIDE_UP_TO: Final = 1 << 20  # elements that are read in float32; larger ones in bfloat16, for the sake of memory
Place: TypeAlias = tuple[str, str, int]
"""Module of the model, kind of weight, number of the part: the same for every file format."""


@dataclass(frozen=True, slots=True)
class WeightSample:
    """`name` is that of the file. `numbers` float32; `finite` speaks of all of the weight."""

    place: Place
    name: str
    shape: tuple[int, ...]
    numbers: torch.Tensor
    finite: bool


def weight_samples(plan: NativePlan, progress: Progress) -> Iterator[WeightSample]:
    """One weight in memory at a time. Raises ArtifactError."""
    seen: Counter[tuple[str, str]] = Counter()
    with WeightReader(plan.card) as reader:
        for number, weight in enumerate(plan.weights):
            progress("comparing weights", number / len(plan.weights))
            info = weight.stored(plan.card.tensors)
            stored = torch.empty(info.shape, dtype=torch.float32 if info.elements <= _WIDE_UP_TO else torch.bfloat16)
            reader.read_into(info, stored)
            shown = stored if weight.rule.transform is None else TRANSFORMS[weight.rule.transform](stored, plan.config)
            flat = shown.reshape(-1)
            # An odd step does not stay in one column.
            step = max(len(flat) // _NUMBERS, 1) | 1
            place = (weight.module, weight.rule.kind, seen[weight.module, weight.rule.kind])
            seen[weight.module, weight.rule.kind] += 1
            yield WeightSample(place, weight.source, tuple(shown.shape), flat[::step].float().clone(), bool(torch.isfinite(flat).all()))
