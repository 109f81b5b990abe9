"""Weight names of mixtures of experts, in Hugging Face checkpoints and in GGUF files."""

from __future__ import annotations

from typing import Final

from headway.models.weight_rules import OneOf, Shard, WeightRule

_LAYER: Final = "model.layers.{layer}"
_GATE_UP: Final = "layers.{layer}.mlp.experts.{item}.gate_up"
_DOWN: Final = "layers.{layer}.mlp.experts.{item}.down"


def _router(source: str) -> WeightRule:
    return WeightRule(source, "layers.{layer}.mlp.router", ("experts", "hidden"), layers="sparse")


def _expert(source: str, module: str, shape: tuple[str, ...], shard: Shard) -> WeightRule:
    return WeightRule(source, module, shape, shard, items="experts", layers="sparse")


def _separate(block: str, gate: str, up: str, down: str) -> tuple[WeightRule, ...]:
    """A tensor for each expert."""
    expert = f"{_LAYER}.{block}.experts.{{item}}"
    return (
        _expert(f"{expert}.{gate}.weight", _GATE_UP, ("expert_ffn", "hidden"), "rows"),
        _expert(f"{expert}.{up}.weight", _GATE_UP, ("expert_ffn", "hidden"), "rows"),
        _expert(f"{expert}.{down}.weight", _DOWN, ("hidden", "expert_ffn"), "columns"),
        _router(f"{_LAYER}.{block}.gate.weight"),
    )


# What transformers 5 makes of either while it loads, and what a state dict of it holds.
_STACKED: Final = (
    _expert(f"{_LAYER}.mlp.experts.gate_up_proj", _GATE_UP, ("experts", "expert_gate_up", "hidden"), "rows"),
    _expert(f"{_LAYER}.mlp.experts.down_proj", _DOWN, ("experts", "hidden", "expert_ffn"), "columns"),
    _router(f"{_LAYER}.mlp.gate.weight"),
)

HF_EXPERTS: Final = OneOf(
    (_separate("mlp", "gate_proj", "up_proj", "down_proj"), _separate("block_sparse_moe", "w1", "w3", "w2"), _STACKED)
)

GGUF_EXPERTS: Final = (
    _expert("blk.{layer}.ffn_gate_exps.weight", _GATE_UP, ("experts", "expert_ffn", "hidden"), "rows"),
    _expert("blk.{layer}.ffn_up_exps.weight", _GATE_UP, ("experts", "expert_ffn", "hidden"), "rows"),
    _expert("blk.{layer}.ffn_down_exps.weight", _DOWN, ("experts", "hidden", "expert_ffn"), "columns"),
    _router("blk.{layer}.ffn_gate_inp.weight"),
)
