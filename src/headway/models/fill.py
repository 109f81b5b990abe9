"""Filling an empty decoder: read, stack what is fused, transform, hand to the module; one module at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard, TensorInfo
from headway.models.decoder import Decoder
from headway.models.weight_rules import PlacedWeight, Transform
from headway.quantization.weight_reader import WeightReader

Progress = Callable[[int, int], None]


def fill(model: Decoder, card: ModelCard, weights: list[PlacedWeight], progress: Progress) -> None:
    """Load all modules. `weights` were checked against the card; `progress(bytes done, bytes of all)` after each."""
    modules: dict[str, dict[str, list[PlacedWeight]]] = {}
    for weight in weights:
        modules.setdefault(weight.module, {}).setdefault(weight.rule.kind, []).append(weight)
    total = sum(card.tensors[weight.source].nbytes for weight in weights)
    done = 0
    with WeightReader(card) as reader:
        for path, kinds in modules.items():
            dtype = torch.float32 if model.config.wide_norms and path.endswith("norm") else model.dtype
            stacks = {
                kind: _stack(parts, reader, card.tensors, dtype, model.config.head_dim) for kind, parts in kinds.items()
            }
            _module(model, path).load(**stacks)
            done += sum(card.tensors[part.source].nbytes for parts in kinds.values() for part in parts)
            progress(done, total)
    if "head" not in modules:
        model.head.load(model.embedding.weight)


def _module(model: Decoder, path: str) -> Any:
    found: Any = model
    for name in path.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found


def _stack(
    parts: list[PlacedWeight],
    reader: WeightReader,
    tensors: Mapping[str, TensorInfo],
    dtype: torch.dtype,
    head_dim: int,
) -> torch.Tensor:
    """The tensors one below the other, each read straight to its place."""
    rows = [part.shape[0] for part in parts]
    out = torch.empty(sum(rows), *parts[0].shape[1:], dtype=dtype)
    for part, target in zip(parts, torch.split(out, rows), strict=True):
        reader.read_into(tensors[part.source], target)
        if part.rule.transform is not None:
            _TRANSFORMS[part.rule.transform](target, head_dim)
    return out


def _plus_one(weight: torch.Tensor, head_dim: int) -> None:
    weight.add_(1.0)


def _undo_permutation(weight: torch.Tensor, head_dim: int) -> None:
    """Rows of every head from (pair, half) to (half, pair) order, in place. Also for biases [rows]."""
    pairs = weight.view(-1, head_dim // 2, 2, weight[0].numel())
    weight.copy_(pairs.transpose(1, 2).reshape(weight.shape))


_TRANSFORMS: Final[Mapping[Transform, Callable[[torch.Tensor, int], None]]] = {
    "plus_one": _plus_one,
    "undo_permutation": _undo_permutation,
}
