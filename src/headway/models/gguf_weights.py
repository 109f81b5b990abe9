"""Weight names of GGUF files."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headway.models.module_paths import (
    ATTENTION_NORM,
    ATTENTION_OUTPUT,
    HEAD_NORM,
    MLP_DOWN,
    MLP_GATE_UP,
    MLP_NORM,
    MLP_UP,
    QKV,
)
from headway.models.weight_rules import WeightRule, with_bias

HEAD: Final = "output.weight"
EMBEDDING: Final = WeightRule("token_embd.weight", "embedding", ("vocab", "hidden"), "rows")

ENDS: Final = (EMBEDDING, WeightRule(HEAD, "head", ("vocab", "hidden"), "rows"))

ATTENTION: Final = (
    WeightRule("blk.{layer}.attn_q.weight", QKV, ("q", "hidden"), "rows"),
    WeightRule("blk.{layer}.attn_k.weight", QKV, ("kv", "hidden"), "rows"),
    WeightRule("blk.{layer}.attn_v.weight", QKV, ("kv", "hidden"), "rows"),
    WeightRule("blk.{layer}.attn_q.bias", QKV, ("q",), "rows", when="qkv_bias"),
    WeightRule("blk.{layer}.attn_k.bias", QKV, ("kv",), "rows", when="qkv_bias"),
    WeightRule("blk.{layer}.attn_v.bias", QKV, ("kv",), "rows", when="qkv_bias"),
    WeightRule(
        "blk.{layer}.attn_output.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"
    ),
    WeightRule(
        "blk.{layer}.attn_output.bias", ATTENTION_OUTPUT, ("hidden",), when="output_bias"
    ),
)

GATED_MLP: Final = (
    WeightRule("blk.{layer}.ffn_gate.weight", MLP_GATE_UP, ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule("blk.{layer}.ffn_up.weight", MLP_GATE_UP, ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule("blk.{layer}.ffn_gate.bias", MLP_GATE_UP, ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule("blk.{layer}.ffn_up.bias", MLP_GATE_UP, ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule("blk.{layer}.ffn_down.weight", MLP_DOWN, ("hidden", "ffn"), "columns", layers="dense"),
    WeightRule("blk.{layer}.ffn_down.bias", MLP_DOWN, ("hidden",), when="mlp_bias", layers="dense"),
)
PROJECTIONS: Final = (*ENDS, *ATTENTION, *GATED_MLP)

# Phi-3 fuses what we fuse, in the same order.
FUSED_PROJECTIONS: Final = (
    *ENDS,
    WeightRule("blk.{layer}.attn_qkv.weight", QKV, ("qkv", "hidden"), "rows"),
    WeightRule(
        "blk.{layer}.attn_output.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"
    ),
    WeightRule("blk.{layer}.ffn_up.weight", MLP_GATE_UP, ("gate_up", "hidden"), "rows"),
    WeightRule("blk.{layer}.ffn_down.weight", MLP_DOWN, ("hidden", "ffn"), "columns"),
)

PRE_NORMS: Final = (
    WeightRule("output_norm.weight", "norm", ("hidden",)),
    WeightRule("blk.{layer}.attn_norm.weight", ATTENTION_NORM, ("hidden",)),
    WeightRule("blk.{layer}.ffn_norm.weight", MLP_NORM, ("hidden",)),
)

LAYER_NORMS: Final = (
    *with_bias(WeightRule("output_norm.weight", "norm", ("hidden",))),
    *with_bias(WeightRule("blk.{layer}.attn_norm.weight", ATTENTION_NORM, ("hidden",))),
    *with_bias(WeightRule("blk.{layer}.ffn_norm.weight", MLP_NORM, ("hidden",), when="mlp_norm")),
)

# Queries, keys and values one below the other, whatever the original was.
FUSED_ATTENTION: Final = (
    *with_bias(WeightRule("blk.{layer}.attn_qkv.weight", QKV, ("qkv", "hidden"), "rows"), "qkv_bias"),
    *with_bias(WeightRule("blk.{layer}.attn_output.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"), "output_bias"),
)

PLAIN_MLP: Final = (
    *with_bias(WeightRule("blk.{layer}.ffn_up.weight", MLP_UP, ("ffn", "hidden"), "rows"), "mlp_bias"),
    *with_bias(WeightRule("blk.{layer}.ffn_down.weight", MLP_DOWN, ("hidden", "ffn"), "columns"), "mlp_bias"),
)

QK_NORMS: Final = (
    WeightRule("blk.{layer}.attn_q_norm.weight", HEAD_NORM, ("head",), when="qk_norm"),
    WeightRule("blk.{layer}.attn_k_norm.weight", HEAD_NORM, ("head",), when="qk_norm"),
)

# Converters reorder the query and key rows of llama files for rotation of neighbouring pairs.
PERMUTED_PROJECTIONS: Final = tuple(
    replace(rule, transform="undo_permutation") if ".attn_q." in rule.source or ".attn_k." in rule.source else rule
    for rule in PROJECTIONS
)
