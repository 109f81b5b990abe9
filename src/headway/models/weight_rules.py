"""Weight tables: checkpoint name -> module -> place in it, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headway.models.decoder_config import DecoderConfig

Shard = Literal["rows", "columns", "whole"]
Transform = Literal["plus_one", "undo_permutation"]
Switch = Literal["qkv_bias", "output_bias", "mlp_bias", "qk_norm", "post_norms"]


@dataclass(frozen=True, slots=True)
class WeightRule:
    """One checkpoint tensor, or one for each layer when its name has {layer} in it.

    Rules with the same module and kind are fused: their tensors lie one below the other, in the order of the table.
    `shape` uses the names of DecoderConfig.dims. `shard` says how tensor parallelism splits it. `when` is the switch of
    DecoderConfig without which the tensor is not there.
    """

    source: str
    module: str
    shape: tuple[str, ...]
    shard: Shard = "whole"
    when: Switch | None = None
    transform: Transform | None = None

    @property
    def kind(self) -> str:
        """ "weight" or "bias"."""
        return "bias" if self.source.endswith(".bias") else "weight"


@dataclass(frozen=True, slots=True)
class PlacedWeight:
    """A rule with its names and sizes filled in."""

    rule: WeightRule
    source: str
    module: str
    shape: tuple[int, ...]


def place(rules: Iterable[WeightRule], config: DecoderConfig) -> Iterator[PlacedWeight]:
    """All tensors that a model of this config needs, module by module."""
    dims = config.dims
    wanted = [rule for rule in rules if rule.when is None or getattr(config, rule.when)]
    per_layer = [rule for rule in wanted if "{layer}" in rule.source]
    for rule in wanted:
        if rule not in per_layer:
            yield _fill(rule, 0, dims)
    for layer in range(config.num_layers):
        for rule in per_layer:
            yield _fill(rule, layer, dims)


def _fill(rule: WeightRule, layer: int, dims: dict[str, int]) -> PlacedWeight:
    shape = tuple(dims[name] for name in rule.shape)
    return PlacedWeight(rule, rule.source.format(layer=layer), rule.module.format(layer=layer), shape)
