"""Rerankers with trained exits: a small head for each pair of a layer and a width of the first token's state.

Source: `matryoshka_config.json` and `classification_heads.safetensors` as rerankers of the vLLM Semantic Router carry them: tensors
`<layer>.<dimension>.{0,3}.{weight,bias}` in float32, the final norm applied at every exit, exact GELU between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from headway.errors import PackageError
from headway.runtime.model_facts import RerankExit, RerankFacts
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.tasks.head import Head
from headway.runtime.tasks.rerank import scorer_name

RERANK_CONTRACT: Final[Mapping[str, object]] = {
    "version": 1, "pooling": "cls", "intermediate_normalization": "final_norm", "final_normalization": "final_norm", "head_dtype": "float32",
}  # fmt: skip


def rerank_facts(
    layout: Mapping[str, Any], config: Mapping[str, Any], scorers: PackageTensors, hidden_size: int, num_layers: int,
    default: RerankExit | None = None, served: tuple[RerankExit, ...] | None = None,
) -> RerankFacts:  # fmt: skip
    """The exits that have a whole head, deepest and widest first. `default` and `served` as the models file says.

    Raises PackageError (`relevance_layout`).
    """
    expected = {"hidden_size": hidden_size, "num_layers": num_layers, "pooling_strategy": "cls"}
    wrong = [f"{name} must be {value!r}, found {layout.get(name)!r:.40}" for name, value in expected.items() if layout.get(name) != value]
    if layout.get("has_final_norm", True) is not True:
        wrong.append("exits without the final norm are not built")
    if config.get("representation_contract", RERANK_CONTRACT) != RERANK_CONTRACT or layout.get("representation_contract", RERANK_CONTRACT) != RERANK_CONTRACT:
        wrong.append("representation_contract must be version 1 for rerankers")
    layers = _numbers(layout, "layer_indices", num_layers, wrong)
    widths = _numbers(layout, "dim_indices", hidden_size, wrong)
    if wrong:
        raise _refused("; ".join(wrong))
    trained = tuple(
        RerankExit(layer, width) for layer in sorted(layers, reverse=True) for width in sorted(widths, reverse=True)
        if _is_whole(scorers, layer, width)
    )  # fmt: skip
    exits = trained if served is None else tuple(each for each in trained if each in served)
    chosen = default or RerankExit(num_layers, hidden_size)
    if not exits or chosen not in exits or (served is not None and len(exits) != len(set(served))):
        raise _refused(f"the package has heads for {', '.join(f'{e.layer}/{e.dimension}' for e in trained) or 'no exit'};"
                       f" asked for {chosen.layer}/{chosen.dimension} as default"
                       f" among {'all' if served is None else ', '.join(f'{e.layer}/{e.dimension}' for e in served)}")  # fmt: skip
    return RerankFacts(exits, chosen)


def exit_heads(scorers: PackageTensors, facts: RerankFacts) -> dict[str, Head]:
    """By the name of their readout."""
    heads = {}
    for each in facts.exits:
        part = scorers.read(torch.float32, f"{each.layer}.{each.dimension}.")
        heads[scorer_name(each)] = Head((part["3.weight"], part["3.bias"]), (part["0.weight"], part["0.bias"]), "gelu")
    return heads


def _is_whole(scorers: PackageTensors, layer: int, width: int) -> bool:
    """Whether the head is there. Raises PackageError for one of another shape."""
    prefix = f"{layer}.{width}."
    there = scorers.shapes(prefix)
    if not there:
        return False
    wanted = {"0.weight": (width // 2, width), "0.bias": (width // 2,), "3.weight": (1, width // 2), "3.bias": (1,)}
    if there != wanted:
        raise _refused(f"the head {layer}/{width} must have the tensors {wanted}, found {there}")
    return True


def _numbers(layout: Mapping[str, Any], name: str, most: int, wrong: list[str]) -> list[int]:
    value = layout.get(name)
    if isinstance(value, list) and value and all(isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= most for n in value):
        return sorted(set(value))
    wrong.append(f"{name} must list numbers from 1 to {most}, found {value!r:.60}")
    return []


def _refused(message: str) -> PackageError:
    return PackageError(f"matryoshka_config.json: {message}", reason="relevance_layout", param="matryoshka_config.json",
                        fix="Download the package again.")  # fmt: skip
