"""One layer of a model: its matrices rounded by a method, and what is written of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from headway.compression.awq import Scaling, best_scaling
from headway.compression.dense_source import DenseSource, StackNames, written_order
from headway.compression.folds import Fold, folds
from headway.compression.gptq import GptqSettings, gptq
from headway.compression.input_sums import InputSums, relative_error
from headway.compression.method import Method
from headway.compression.rounding import Grid, Rounded, nearest, reordered
from headway.compression.stored_weight import stored_weight


@dataclass(frozen=True, slots=True)
class LayerError:
    """`module` is a matrix (or several that are computed together) by our name; `error` as `relative_error` says. `exponent` of AWQ."""

    module: str
    error: float
    exponent: float | None = None


@dataclass(slots=True)
class Layer:
    """The stacks of a layer, float32, by module and kind. `rounded` comes with `compress`."""

    index: int
    names: Mapping[tuple[str, str], StackNames]
    stacks: dict[tuple[str, str], torch.Tensor]
    rounded: dict[str, Rounded] = field(default_factory=dict)

    @property
    def matrices(self) -> list[str]:
        """Modules whose weights are compressed."""
        return [module for (module, _), names in self.names.items() if names.is_matrix]

    def tensors(self, source: DenseSource) -> dict[str, torch.Tensor]:
        """float32, by their names in a checkpoint, as they are now: matrices that are rounded as a reader makes them."""
        found: dict[str, torch.Tensor] = {}
        for key, names in self.names.items():
            rounded = self.rounded.get(key[0]) if names.is_matrix else None
            found |= source.as_written(names, self.stacks[key] if rounded is None else rounded.weight())
        return found

    def stored(self, source: DenseSource, grid: Grid, dtype: torch.dtype) -> dict[str, torch.Tensor]:
        """What is written of the layer; `dtype` is that of dense tensors."""
        found: dict[str, torch.Tensor] = {}
        for key, names in self.names.items():
            if names.is_matrix:
                found |= _packed(source, names, self.rounded[key[0]], grid)
            else:
                found |= {name: tensor.to(dtype) for name, tensor in source.as_written(names, self.stacks[key]).items()}
        return found


def read_layer(source: DenseSource, index: int, stacks: Sequence[StackNames]) -> Layer:
    """`stacks` of the whole model."""
    inside = {(names.module, names.kind): names for names in stacks if names.module.startswith(f"layers.{index}.")}
    return Layer(index, inside, {key: source.stack(names) for key, names in inside.items()})


def compress(
    layer: Layer, source: DenseSource, method: Method, grid: Grid, sums: Mapping[str, InputSums], settings: GptqSettings, dtype: torch.dtype
) -> list[LayerError]:
    """Round the matrices of `layer`, which changes it. `sums` of their inputs, empty for methods without texts."""
    exponents: dict[str, float] = {}
    originals = {module: layer.stacks[module, "weight"] for module in layer.matrices}
    factors: dict[str, torch.Tensor] = {}
    if method.fit == "awq":
        for fold in folds(source.config, layer.index, {module for module, _ in layer.names}):
            scaling = best_scaling(fold, originals, sums, grid)
            exponents |= dict.fromkeys(fold.matrices, scaling.exponent)
            if scaling.exponent:
                factors |= dict.fromkeys(fold.matrices, fold_into(layer, source, fold, scaling, dtype))
    errors = []
    for module in originals:
        weight, seen = layer.stacks[module, "weight"], sums.get(module)
        if method.fit == "gptq" and seen is not None:
            layer.rounded[module] = gptq(weight, seen.products, grid, settings)
        else:
            layer.rounded[module] = nearest(weight, grid)
        kept = layer.rounded[module].weight()
        if method.fit == "awq":
            # For the inputs that the sums are of. Rows that another fold divided stay divided in both.
            factor = factors.get(module, torch.ones(weight.shape[1]))
            kept, weight = kept / factor, weight / factor
        errors.append(LayerError(module, relative_error(kept, weight, seen), exponents.get(module)))
    return errors


def fold_into(layer: Layer, source: DenseSource, fold: Fold, scaling: Scaling, dtype: torch.dtype) -> torch.Tensor:
    """Divide what makes the inputs, multiply the matrices that read them, in `layer`. The factors [in] that those really took: norms are
    written as `dtype`, with fewer digits, and the matrices make up for it."""
    inputs, outputs = scaling.inputs, scaling.outputs
    for kind in ("weight", "bias"):
        key = (fold.producer, kind)
        if key not in layer.stacks:
            continue
        stack = layer.stacks[key] = layer.stacks[key].clone()
        rows = stack[fold.first_row : fold.first_row + len(outputs)]
        if fold.norm and kind == "weight":
            before = rows.clone()
            rows.copy_(_as_kept(before / outputs, layer.names[key], dtype))
            inputs = outputs = torch.where(rows != 0, before / rows, 1.0)
        else:
            rows /= outputs if rows.dim() == 1 else outputs[:, None]
    for name in (*fold.matrices, *fold.plain):
        layer.stacks[name, "weight"] = layer.stacks[name, "weight"] * inputs
    return inputs


def _as_kept(norm: torch.Tensor, names: StackNames, dtype: torch.dtype) -> torch.Tensor:
    """As a reader finds it that was written as `dtype`; some checkpoints store w of 1 + w."""
    offset = 1.0 if names.written[0].rule.transform == "plus_one" else 0.0
    return (norm - offset).to(dtype).float() + offset


def _packed(source: DenseSource, names: StackNames, rounded: Rounded, grid: Grid) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    start = 0
    for part, rows in zip(names.written, names.rows, strict=True):
        module = part.source.removesuffix(".weight")
        piece, order = rounded.rows(start, start + rows), written_order(part, source.config)
        piece = piece if order is None else reordered(piece, order)
        found |= {f"{module}.{ending}": tensor for ending, tensor in stored_weight(piece, grid).items()}
        start += rows
    return found
