"""Filling an empty model: read, stack what is fused, transform, hand to the module; one module at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from headway.artifacts.card import TensorInfo
from headway.kernels.float8_matrix import Float8Matrix
from headway.kernels.integer_weight import IntegerMatrix
from headway.kernels.interface import CPU
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


@dataclass(frozen=True, slots=True)
class Stack:
    """What a module takes as its `kind` ("weight" or "bias"): stored tensors, one below the other, in the dtype that it computes in."""

    module: str
    kind: str
    dtype: torch.dtype
    parts: tuple[PlacedWeight, ...]

    @property
    def rows(self) -> list[int]:
        """Of each part."""
        return [part.loaded_shape[0] for part in self.parts]

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(self.rows), *self.parts[0].loaded_shape[1:])


Matrix = torch.Tensor | IntegerMatrix | Float8Matrix  # what a module is loaded with
StackOf = Callable[[Stack], Matrix]


def fill(
    model: Fillable, tensors: Mapping[str, TensorInfo], weights: Sequence[PlacedWeight], read_into: ReadInto, progress: Progress, *,
    head: bool = True, device: torch.device = CPU,
) -> None:  # fmt: skip
    """Load all modules. `weights` were checked against `tensors`; `progress(bytes done, bytes of all)` after each. A `head`
    that has no weights of its own takes those of the embedding."""
    fill_stacks(
        model, tensors, stacks_of(model, weights), lambda stack: read_stack(stack, read_into, tensors, model.config), progress,
        head=head, device=device,
    )  # fmt: skip


def fill_stacks(
    model: Fillable, tensors: Mapping[str, TensorInfo], stacks: Sequence[Stack], stack_of: StackOf, progress: Progress, *, head: bool,
    device: torch.device = CPU,
) -> None:  # fmt: skip
    """`fill`, with stacks that come from anywhere, as floats or as integers: they are asked for in their order, and not before their module
    is next."""
    modules: dict[str, list[Stack]] = {}
    for stack in stacks:
        modules.setdefault(stack.module, []).append(stack)
    sizes = {path: sum(part.stored(tensors).nbytes for stack in each for part in stack.parts) for path, each in modules.items()}
    done, total = 0, sum(sizes.values())
    for path, each in modules.items():
        load_module(module_at(model, path), {stack.kind: _on(stack_of(stack), device) for stack in each})
        done += sizes[path]
        progress(done, total)
    if head and "head" not in modules:
        module_at(model, "head").load(module_at(model, "embedding").weight)


def stacks_of(model: Fillable, weights: Sequence[PlacedWeight]) -> list[Stack]:
    """What the modules of `model` take, module by module."""
    modules: dict[str, dict[str, list[PlacedWeight]]] = {}
    for weight in weights:
        modules.setdefault(weight.module, {}).setdefault(weight.rule.kind, []).append(weight)
    return [
        Stack(path, kind, torch.float32 if model.config.wide_norms and path.endswith("norm") else model.dtype, tuple(parts))
        for path, kinds in modules.items()
        for kind, parts in kinds.items()
    ]


def read_stack(stack: Stack, read_into: ReadInto, tensors: Mapping[str, TensorInfo], config: SizedConfig) -> torch.Tensor:
    """The tensors one below the other, each read straight to its place unless it must be transformed first."""
    out = torch.empty(stack.shape, dtype=stack.dtype)
    for part, target in zip(stack.parts, torch.split(out, stack.rows), strict=True):
        info, transform = part.stored(tensors), part.rule.transform
        if transform is None:
            read_into(info, target)
        else:
            stored = torch.empty(info.shape, dtype=stack.dtype)
            read_into(info, stored)
            target.copy_(TRANSFORMS[transform](stored, config))
    return out


def _on(part: Matrix, device: torch.device) -> Matrix:
    """Kernels move codes themselves, in the layout that they pack."""
    return part.to(device) if isinstance(part, torch.Tensor) else part


def load_module(module: Any, parts: Mapping[str, Matrix]) -> None:
    """`parts` by their kinds; the weight of a `Linear` may be of integers or of 8-bit floats."""
    weight = parts.get("weight")
    if isinstance(weight, IntegerMatrix):
        module.load_integers(weight, parts.get("bias"))
    elif isinstance(weight, Float8Matrix):
        module.load_float8(weight, parts.get("bias"))
    else:
        module.load(**parts)


def module_at(model: Fillable, path: str) -> Any:
    """The module that weight tables call `path`."""
    found: Any = model
    for name in path.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found
