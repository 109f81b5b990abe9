"""Filling an empty model: read, stack what is fused, transform, hand to the module; one module at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from headway.artifacts.card import TensorInfo
from headway.models.sized_config import SizedConfig
from headway.models.weight_rules import PlacedWeight
from headway.models.weight_transforms import TRANSFORMS

Progress = Callable[[int, int], None]
ReadInto = Callable[[TensorInfo, torch.Tensor], None]  # a stored tensor, where it goes


class Fillable(Protocol):
    """A model whose modules are found by their attribute paths."""

    dtype: torch.dtype

    @property
    def config(self) -> SizedConfig: ...


def fill(
    model: Fillable, tensors: Mapping[str, TensorInfo], weights: Sequence[PlacedWeight], read_into: ReadInto, progress: Progress, *,
    head: bool = True,
) -> None:  # fmt: skip
    """Load all modules. `weights` were checked against `tensors`; `progress(bytes done, bytes of all)` after each. A `head`
    that has no weights of its own takes those of the embedding."""
    modules: dict[str, dict[str, list[PlacedWeight]]] = {}
    for weight in weights:
        modules.setdefault(weight.module, {}).setdefault(weight.rule.kind, []).append(weight)
    total = sum(weight.stored(tensors).nbytes for weight in weights)
    done = 0
    for path, kinds in modules.items():
        dtype = torch.float32 if model.config.wide_norms and path.endswith("norm") else model.dtype
        stacks = {kind: _stack(parts, read_into, tensors, dtype, model.config) for kind, parts in kinds.items()}
        _module(model, path).load(**stacks)
        done += sum(part.stored(tensors).nbytes for parts in kinds.values() for part in parts)
        progress(done, total)
    if head and "head" not in modules:
        _module(model, "head").load(_module(model, "embedding").weight)


def _module(model: Fillable, path: str) -> Any:
    found: Any = model
    for name in path.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found


def _stack(
    parts: list[PlacedWeight],
    read_into: ReadInto,
    tensors: Mapping[str, TensorInfo],
    dtype: torch.dtype,
    config: SizedConfig,
) -> torch.Tensor:
    """The tensors one below the other, each read straight to its place unless it must be transformed first."""
    rows = [part.loaded_shape[0] for part in parts]
    out = torch.empty(sum(rows), *parts[0].loaded_shape[1:], dtype=dtype)
    for part, target in zip(parts, torch.split(out, rows), strict=True):
        info, transform = part.stored(tensors), part.rule.transform
        if transform is None:
            read_into(info, target)
        else:
            stored = torch.empty(info.shape, dtype=dtype)
            read_into(info, stored)
            target.copy_(TRANSFORMS[transform](stored, config))
    return out
