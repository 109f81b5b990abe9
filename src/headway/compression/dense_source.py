"""The weights of a dense model by the names that Hugging Face checkpoints of its architecture have, wherever they come from.

GGUF files have names, orders of rows and offsets of their own, and some checkpoints stack what others store apart. What our modules
take is the same for all; so tensors are read as our modules take them, and told apart again as a checkpoint stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch

from headway.artifacts.card import TensorInfo
from headway.errors import NotBuiltError
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import Stack, read_stack
from headway.models.native import NativePlan
from headway.models.registry import architecture
from headway.models.weight_rules import PlacedWeight, place, spelled
from headway.quantization.dense import DENSE_DTYPES
from headway.quantization.weight_reader import WeightReader

# Which of several spellings other engines read, where it is not the first one.
_WRITTEN_AS: Final[Mapping[str, str]] = {"MixtralForCausalLM": "model.layers.0.block_sparse_moe.experts.0.w1.weight"}


@dataclass(frozen=True, slots=True)
class StackNames:
    """A stack (what one of our modules takes as its weight or its bias) in the source and as it is written."""

    module: str
    kind: str
    source: tuple[PlacedWeight, ...]
    written: tuple[PlacedWeight, ...]

    @property
    def rows(self) -> list[int]:
        """Of each written tensor."""
        return [part.loaded_shape[0] for part in self.written]

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix that methods compress: one of a layer, and not the router of experts."""
        return self.kind == "weight" and self.module.startswith("layers.") and len(self.written[0].loaded_shape) == 2 and (
            self.written[0].rule.shard != "whole"
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Inputs of a matrix."""
        return self.written[0].loaded_shape[-1]


class DenseSource:
    """Reads a planned model. Close it, or use it as a context manager."""

    def __init__(self, plan: NativePlan, reader: WeightReader):
        self.config: DecoderConfig = plan.config
        self.stacks = stack_names(plan)
        self._tensors: Mapping[str, TensorInfo] = plan.card.tensors
        self._reader = reader

    def stack(self, names: StackNames) -> torch.Tensor:
        """float32, the tensors one below the other as our modules take them."""
        whole = Stack(names.module, names.kind, torch.float32, names.source)
        return read_stack(whole, self._reader.read_into, self._tensors, self.config)

    @property
    def dtype(self) -> torch.dtype:
        """Of the embedding, as it is stored; bfloat16 where that is packed itself (GGUF)."""
        [embedding] = [names for names in self.stacks if names.module == "embedding"]
        return DENSE_DTYPES.get(embedding.source[0].stored(self._tensors).dtype, torch.bfloat16)

    def as_written(self, names: StackNames, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
        """A stack (or anything else with its rows) cut into the tensors of a checkpoint, by their names."""
        return {
            part.source: untransformed(part, rows, self.config)
            for part, rows in zip(names.written, torch.split(tensor, names.rows), strict=True)
        }


def stack_names(plan: NativePlan) -> tuple[StackNames, ...]:
    """All stacks of a model, in the order of its modules. Raises NotBuiltError for matrices that no reader of packed weights takes."""
    written: dict[tuple[str, str], list[PlacedWeight]] = {}
    for each in _written(plan):
        if each.rule.transform == "transposed":
            raise NotBuiltError(
                f"{plan.card.architecture} stores its matrices transposed, and readers of packed weights do not agree on which way round"
                " those are", param="model", fix="Serve it with --quantization int8, which rounds while loading.",
            )  # fmt: skip
        written.setdefault((each.module, each.rule.kind), []).append(each)
    source: dict[tuple[str, str], list[PlacedWeight]] = {}
    for each in plan.weights:
        source.setdefault((each.module, each.rule.kind), []).append(each)
    return tuple(
        StackNames(module, kind, tuple(parts), tuple(written[module, kind])) for (module, kind), parts in source.items()
    )  # fmt: skip


def _written(plan: NativePlan) -> list[PlacedWeight]:
    """The tensors of the checkpoint that is written: those of the source, unless that is GGUF or stacks its experts."""
    stacked = any(weight.rule.stacked for weight in plan.weights)
    if plan.card.format == "safetensors" and not stacked:
        return list(plan.weights)
    likely = _WRITTEN_AS.get(plan.card.architecture)
    rules = spelled(architecture(plan.card.architecture).safetensors, () if likely is None else (likely,))
    there = {(weight.module, weight.rule.kind) for weight in plan.weights}
    return [weight for weight in place(rules, plan.config) if (weight.module, weight.rule.kind) in there]


def untransformed(part: PlacedWeight, rows: torch.Tensor, config: DecoderConfig) -> torch.Tensor:
    """The reverse of what is done to a tensor of a checkpoint while it is read, for its `rows`."""
    order = written_order(part, config)
    if part.rule.transform == "plus_one":
        return rows - 1.0
    return rows if order is None else rows[order]


def written_order(part: PlacedWeight, config: DecoderConfig) -> torch.Tensor | None:
    """Which of our rows each row of the tensor is; None = they are in the same order."""
    return _grouped_order(config) if part.rule.transform == "grouped_qkv" else None


def _grouped_order(config: DecoderConfig) -> torch.Tensor:
    """For every key head its queries, its key and its value, as rows of all queries, all keys, all values."""
    heads, keys, size = config.num_heads, config.num_kv_heads, config.head_dim
    queries = torch.arange(heads * size).view(keys, -1)
    one, other = (torch.arange(keys * size).view(keys, size) + start for start in (heads * size, (heads + keys) * size))
    return torch.cat([queries, one, other], 1).flatten()


def dense_modules(stacks: tuple[StackNames, ...]) -> list[str]:
    """Names of modules that readers may take for compressed ones: what makes logits, also where it shares the embedding's weights, and
    routers of experts."""
    found = [names.written[0].source.removesuffix(".weight") for names in stacks if names.module == "head" or names.module.endswith(".router")]
    return found if any(names.module == "head" for names in stacks) else ["lm_head", *found]
