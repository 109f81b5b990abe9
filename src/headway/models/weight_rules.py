"""Weight tables: checkpoint name -> module -> place in it, as data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from headway.artifacts.card import TensorInfo
from headway.artifacts.sliced_tensor import SlicedTensor
from headway.models.sized_config import SizedConfig
from headway.models.weight_transforms import Transform

Shard = Literal["rows", "columns", "whole"]
Switch = Literal[
    "qkv_bias", "output_bias", "mlp_bias", "qk_norm", "post_norms", "mlp_norm", "norm_bias", "position_rows", "segment_rows",
    "factorized", "own_position_keys", "own_position_queries", "normalized_distances", "convolution",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class WeightRule:
    """One checkpoint tensor, or one for each layer when its name has {layer} in it, and for each {item} of `items`.

    Rules with the same module and kind are fused: their tensors lie one below the other, in the order of the table.
    `shape` is that of the file, in names of DecoderConfig.dims, and `items` is such a name. `transform` is applied to what was
    read. `shard` says how tensor parallelism splits the result. `when` is the switch of DecoderConfig without which the
    tensor is not there, `layers` the kind of feed-forward without which a layer lacks it. With {item} in the module and not in
    the name of the tensor, every item is one row of its first dimension. Layers before `first_layer` lack the tensor.
    """

    source: str
    module: str
    shape: tuple[str, ...]
    shard: Shard = "whole"
    when: Switch | None = None
    transform: Transform | None = None
    items: str | None = None
    layers: Literal["dense", "sparse"] | None = None
    first_layer: int = 0

    @property
    def stacked(self) -> bool:
        """Whether the items lie in one tensor."""
        return self.items is not None and "{item}" not in self.source

    @property
    def kind(self) -> str:
        """ "weight" or "bias"."""
        return "bias" if self.source.endswith((".bias", ".beta")) else "weight"


def with_bias(rule: WeightRule, when: Switch | None = None) -> tuple[WeightRule, WeightRule]:
    """The rule of a weight and that of the bias beside it, which is there under `when`."""
    transposed = rule.transform == "transposed"
    bias = replace(
        rule, source=rule.source.removesuffix("weight") + "bias", shape=rule.shape[-1:] if transposed else rule.shape[:1],
        shard="whole" if rule.shard == "columns" else rule.shard, when=when or rule.when,
        transform=None if transposed else rule.transform,
    )  # fmt: skip
    return rule, bias


@dataclass(frozen=True, slots=True)
class PlacedWeight:
    """A rule with its names and sizes filled in. `shape` is that of the file; of a stacked tensor only row `item` is meant."""

    rule: WeightRule
    source: str
    module: str
    shape: tuple[int, ...]
    item: int

    def stored(self, tensors: Mapping[str, TensorInfo]) -> TensorInfo:
        """What is read from the file."""
        whole = tensors[self.source]
        if not self.rule.stacked:
            return whole
        if isinstance(whole, SlicedTensor):
            return whole.item(self.item)
        nbytes = whole.nbytes // self.shape[0]
        return replace(whole, shape=self.shape[1:], nbytes=nbytes, offset=whole.offset + self.item * nbytes)

    @property
    def loaded_shape(self) -> tuple[int, ...]:
        """After the transform."""
        shape = self.shape[1:] if self.rule.stacked else self.shape
        return shape[::-1] if self.rule.transform == "transposed" else shape


@dataclass(frozen=True, slots=True)
class OneOf:
    """Several spellings of the same weights."""

    spellings: tuple[tuple[WeightRule, ...], ...]

    def found(self, names: Collection[str]) -> tuple[WeightRule, ...]:
        """The first spelling whose first rule names a tensor that is there; the first one when none does."""
        for spelling in self.spellings:
            pattern = re.sub(r"\\{(layer|item)\\}", r"\\d+", re.escape(spelling[0].source))
            if any(re.fullmatch(pattern, name) for name in names):
                return spelling
        return self.spellings[0]


Table = tuple[WeightRule | OneOf, ...]


def spelled(table: Table, names: Collection[str]) -> tuple[WeightRule, ...]:
    """The rules of a table for a checkpoint with tensors of these names."""
    return tuple(rule for entry in table for rule in (entry.found(names) if isinstance(entry, OneOf) else (entry,)))


def place(rules: Iterable[WeightRule], config: SizedConfig) -> Iterator[PlacedWeight]:
    """All tensors that a model of this config needs, module by module."""
    dims = config.dims
    wanted = [rule for rule in rules if rule.when is None or getattr(config, rule.when)]
    per_layer = [rule for rule in wanted if "{layer}" in rule.source]
    for rule in wanted:
        if rule not in per_layer:
            yield from _fill(rule, 0, dims)
    for layer, sparse in enumerate(config.layer_sparse):
        for rule in per_layer:
            if layer >= rule.first_layer and (rule.layers is None or (rule.layers == "sparse") == sparse):
                yield from _fill(rule, layer, dims)


def _fill(rule: WeightRule, layer: int, dims: dict[str, int]) -> Iterator[PlacedWeight]:
    shape = tuple(dims[name] for name in rule.shape)
    for item in range(1 if rule.items is None else dims[rule.items]):
        names = {"layer": layer, "item": item}
        yield PlacedWeight(rule, rule.source.format(**names), rule.module.format(**names), shape, item)
