"""Weight names that Llama gave to the world, and with small differences Mistral, Qwen and Gemma."""

from __future__ import annotations

from typing import Final

from headway.models.module_paths import (
    ATTENTION_NORM,
    ATTENTION_OUTPUT,
    HEAD_NORM,
    MLP_DOWN,
    MLP_GATE_UP,
    MLP_NORM,
    QKV,
)
from headway.models.weight_rules import WeightRule, with_bias

_ATTENTION: Final = "model.layers.{layer}.self_attn"
_MLP: Final = "model.layers.{layer}.mlp"

HEAD: Final = "lm_head.weight"
EMBEDDING: Final = WeightRule("model.embed_tokens.weight", "embedding", ("vocab", "hidden"), "rows")

ENDS: Final = (EMBEDDING, WeightRule(HEAD, "head", ("vocab", "hidden"), "rows"))

ATTENTION: Final = (
    WeightRule(f"{_ATTENTION}.q_proj.weight", QKV, ("q", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.k_proj.weight", QKV, ("kv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.v_proj.weight", QKV, ("kv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.q_proj.bias", QKV, ("q",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.k_proj.bias", QKV, ("kv",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.v_proj.bias", QKV, ("kv",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.o_proj.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"),
    WeightRule(
        f"{_ATTENTION}.o_proj.bias", ATTENTION_OUTPUT, ("hidden",), when="output_bias"
    ),
)

GATED_MLP: Final = (
    WeightRule(f"{_MLP}.gate_proj.weight", MLP_GATE_UP, ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule(f"{_MLP}.up_proj.weight", MLP_GATE_UP, ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule(f"{_MLP}.gate_proj.bias", MLP_GATE_UP, ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule(f"{_MLP}.up_proj.bias", MLP_GATE_UP, ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule(f"{_MLP}.down_proj.weight", MLP_DOWN, ("hidden", "ffn"), "columns", layers="dense"),
    WeightRule(f"{_MLP}.down_proj.bias", MLP_DOWN, ("hidden",), when="mlp_bias", layers="dense"),
)
PROJECTIONS: Final = (*ENDS, *ATTENTION, *GATED_MLP)

# Phi-3 fuses what we fuse, in the same order.
FUSED_PROJECTIONS: Final = (
    *ENDS,
    WeightRule(f"{_ATTENTION}.qkv_proj.weight", QKV, ("qkv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.o_proj.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"),
    WeightRule(f"{_MLP}.gate_up_proj.weight", MLP_GATE_UP, ("gate_up", "hidden"), "rows"),
    WeightRule(f"{_MLP}.down_proj.weight", MLP_DOWN, ("hidden", "ffn"), "columns"),
)

PRE_NORMS: Final = (
    WeightRule("model.norm.weight", "norm", ("hidden",)),
    WeightRule("model.layers.{layer}.input_layernorm.weight", ATTENTION_NORM, ("hidden",)),
    WeightRule("model.layers.{layer}.post_attention_layernorm.weight", MLP_NORM, ("hidden",)),
)

LAYER_NORMS: Final = (
    *with_bias(WeightRule("model.norm.weight", "norm", ("hidden",))),
    *with_bias(WeightRule("model.layers.{layer}.input_layernorm.weight", ATTENTION_NORM, ("hidden",))),
    *with_bias(
        WeightRule(
            "model.layers.{layer}.post_attention_layernorm.weight", MLP_NORM, ("hidden",), when="mlp_norm"
        )
    ),
)

QK_NORMS: Final = (
    WeightRule(f"{_ATTENTION}.q_norm.weight", HEAD_NORM, ("head",), when="qk_norm"),
    WeightRule(f"{_ATTENTION}.k_norm.weight", HEAD_NORM, ("head",), when="qk_norm"),
)
