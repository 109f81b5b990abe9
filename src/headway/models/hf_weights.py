"""Weight names that Llama gave to the world, and with small differences Mistral, Qwen and Gemma."""

from __future__ import annotations

from typing import Final

from headway.models.weight_rules import WeightRule, with_bias

_ATTENTION: Final = "model.layers.{layer}.self_attn"
_MLP: Final = "model.layers.{layer}.mlp"

HEAD: Final = "lm_head.weight"
EMBEDDING: Final = WeightRule("model.embed_tokens.weight", "embedding", ("vocab", "hidden"), "rows")

ENDS: Final = (EMBEDDING, WeightRule(HEAD, "head", ("vocab", "hidden"), "rows"))

ATTENTION: Final = (
    WeightRule(f"{_ATTENTION}.q_proj.weight", "layers.{layer}.attention.qkv", ("q", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.k_proj.weight", "layers.{layer}.attention.qkv", ("kv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.v_proj.weight", "layers.{layer}.attention.qkv", ("kv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.q_proj.bias", "layers.{layer}.attention.qkv", ("q",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.k_proj.bias", "layers.{layer}.attention.qkv", ("kv",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.v_proj.bias", "layers.{layer}.attention.qkv", ("kv",), "rows", when="qkv_bias"),
    WeightRule(f"{_ATTENTION}.o_proj.weight", "layers.{layer}.attention.output.projection", ("hidden", "q"), "columns"),
    WeightRule(
        f"{_ATTENTION}.o_proj.bias", "layers.{layer}.attention.output.projection", ("hidden",), when="output_bias"
    ),
)

GATED_MLP: Final = (
    WeightRule(f"{_MLP}.gate_proj.weight", "layers.{layer}.mlp.gate_up", ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule(f"{_MLP}.up_proj.weight", "layers.{layer}.mlp.gate_up", ("ffn", "hidden"), "rows", layers="dense"),
    WeightRule(f"{_MLP}.gate_proj.bias", "layers.{layer}.mlp.gate_up", ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule(f"{_MLP}.up_proj.bias", "layers.{layer}.mlp.gate_up", ("ffn",), "rows", when="mlp_bias", layers="dense"),
    WeightRule(f"{_MLP}.down_proj.weight", "layers.{layer}.mlp.down.projection", ("hidden", "ffn"), "columns", layers="dense"),
    WeightRule(f"{_MLP}.down_proj.bias", "layers.{layer}.mlp.down.projection", ("hidden",), when="mlp_bias", layers="dense"),
)
PROJECTIONS: Final = (*ENDS, *ATTENTION, *GATED_MLP)

# Phi-3 fuses what we fuse, in the same order.
FUSED_PROJECTIONS: Final = (
    *ENDS,
    WeightRule(f"{_ATTENTION}.qkv_proj.weight", "layers.{layer}.attention.qkv", ("qkv", "hidden"), "rows"),
    WeightRule(f"{_ATTENTION}.o_proj.weight", "layers.{layer}.attention.output.projection", ("hidden", "q"), "columns"),
    WeightRule(f"{_MLP}.gate_up_proj.weight", "layers.{layer}.mlp.gate_up", ("gate_up", "hidden"), "rows"),
    WeightRule(f"{_MLP}.down_proj.weight", "layers.{layer}.mlp.down.projection", ("hidden", "ffn"), "columns"),
)

PRE_NORMS: Final = (
    WeightRule("model.norm.weight", "norm", ("hidden",)),
    WeightRule("model.layers.{layer}.input_layernorm.weight", "layers.{layer}.attention_norm", ("hidden",)),
    WeightRule("model.layers.{layer}.post_attention_layernorm.weight", "layers.{layer}.mlp_norm", ("hidden",)),
)

LAYER_NORMS: Final = (
    *with_bias(WeightRule("model.norm.weight", "norm", ("hidden",))),
    *with_bias(WeightRule("model.layers.{layer}.input_layernorm.weight", "layers.{layer}.attention_norm", ("hidden",))),
    *with_bias(
        WeightRule(
            "model.layers.{layer}.post_attention_layernorm.weight", "layers.{layer}.mlp_norm", ("hidden",), when="mlp_norm"
        )
    ),
)

QK_NORMS: Final = (
    WeightRule(f"{_ATTENTION}.q_norm.weight", "layers.{layer}.attention.head_norm", ("head",), when="qk_norm"),
    WeightRule(f"{_ATTENTION}.k_norm.weight", "layers.{layer}.attention.head_norm", ("head",), when="qk_norm"),
)
