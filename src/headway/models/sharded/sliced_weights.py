"""The weights of one rank: which of the model's, and which part of each is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headway.artifacts.card import TensorInfo
from headway.artifacts.sliced_tensor import Ranges, sliced
from headway.distributed.rank_place import RankPlace
from headway.errors import ArtifactError
from headway.models.decoder_config import DecoderConfig
from headway.models.sharded.dimensions import kept_of
from headway.models.weight_rules import PlacedWeight
from headway.quantization.packed_weight import PackedTensor
from headway.quantization.sliced_packed import sliced_packed

_LAYER: Final = re.compile(r"^layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class RankWeights:
    """`tensors`: by name, what the rank reads of each. `summed`: paths of modules whose results the ranks of a stage add up."""

    weights: tuple[PlacedWeight, ...]
    tensors: Mapping[str, TensorInfo]
    summed: frozenset[str]


def rank_weights(
    weights: Iterable[PlacedWeight], tensors: Mapping[str, TensorInfo], config: DecoderConfig, place: RankPlace, layers: range
) -> RankWeights:
    """`weights` and `config` are those of the whole model, `tensors` those of its logical card.

    Raises ArtifactError (`cannot_divide`) where a packed format does not let a matrix be cut there.
    """
    staged = list(_of_stage(weights, place, layers))
    summed = frozenset(
        weight.module for weight, kept in ((each, _kept(each, config, place)) for each in staged)
        if place.tensor > 1 and len(weight.shape) >= 2 and _input_is_cut(weight, kept)
    )  # fmt: skip
    found: dict[str, TensorInfo] = {}
    mine = []
    for weight in staged:
        if weight.module in summed and weight.rule.kind == "bias" and place.part:
            continue  # added once
        if not _is_mine(weight, config, place):
            continue
        kept = _kept(weight, config, place)
        shape = tuple(sum(map(len, ranges)) for ranges in kept)
        mine.append(replace(weight, shape=shape))
        if weight.source not in found:
            found[weight.source] = _cut(tensors[weight.source], weight, kept, shape)
    return RankWeights(tuple(mine), found, summed)


def _is_mine(weight: PlacedWeight, config: DecoderConfig, place: RankPlace) -> bool:
    """Of tensors of which there is one for each head, those of the rank's heads."""
    items = weight.rule.items
    if items not in ("heads", "kv_heads") or weight.rule.stacked:
        return True
    return weight.item in kept_of(items, 0, config, place)[0]


def _of_stage(weights: Iterable[PlacedWeight], place: RankPlace, layers: range) -> Iterator[PlacedWeight]:
    ends = {"embedding": place.is_first, "positions": place.is_first, "norm": place.is_last, "head": place.is_last}
    listed = list(weights)
    tied = all(weight.module != "head" for weight in listed)
    for weight in listed:
        match = _LAYER.match(weight.module)
        if match is None:
            if ends[weight.module]:
                yield weight
            elif weight.module == "embedding" and place.is_last and tied:
                yield replace(weight, module="head")
        elif int(match[1]) in layers:
            yield replace(weight, module=f"layers.{int(match[1]) - layers.start}.{weight.module[match.end() :]}")


def _kept(weight: PlacedWeight, config: DecoderConfig, place: RankPlace) -> tuple[Ranges, ...]:
    names = weight.rule.shape
    sizes = tuple(config.dims[name] for name in names)
    if sizes != weight.shape:  # packed the other way round (`packed_orientation`)
        names = names[::-1]
    grouped = weight.rule.transform == "grouped_qkv"
    return tuple(kept_of(name, size, config, place, grouped=grouped) for name, size in zip(names, weight.shape, strict=True))


def _input_is_cut(weight: PlacedWeight, kept: tuple[Ranges, ...]) -> bool:
    """Whether the rank has some of the columns of a matrix [out, in]."""
    matrix = kept[1:] if weight.rule.stacked else kept
    sizes = weight.shape[1:] if weight.rule.stacked else weight.shape
    column = 0 if weight.rule.transform == "transposed" else 1
    return len(matrix) == 2 and matrix[column] != (range(sizes[column]),)


def _cut(stored: TensorInfo, weight: PlacedWeight, kept: tuple[Ranges, ...], shape: tuple[int, ...]) -> TensorInfo:
    if shape == weight.shape and all(ranges == (range(size),) for ranges, size in zip(kept, shape, strict=True)):
        return stored
    try:
        return sliced_packed(stored, kept) if isinstance(stored, PackedTensor) else sliced(stored, kept)
    except ValueError as error:
        raise ArtifactError(
            f"{stored.file}: {stored.name} ({stored.dtype}, {list(stored.shape)}) cannot be divided so: {error}. The input size is not aligned"
            " with the quantized weight shape", reason="cannot_divide", param="tensor_parallel_size",
            fix="Use another tensor parallel size, or divide by layers: --pipeline-parallel-size.",
        ) from None  # fmt: skip
