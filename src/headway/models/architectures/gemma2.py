"""Gemma2ForCausalLM: Gemma 2.

Every other layer has a window; scores and logits are capped softly; norms scale by 1 + w in float32, also behind
attention and feed-forward; embeddings times sqrt(hidden).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.errors import NotBuiltError
from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import activation, flag, layer_types, number, optional_count, optional_number, sizes
from headway.models.hf_rope import rope_spec
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_POST_NORM, MLP_NORM, MLP_POST_NORM
from headway.models.weight_rules import WeightRule


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    if flag(config, "use_bidirectional_attention"):
        raise NotBuiltError("Gemma 2 with bidirectional attention", param="use_bidirectional_attention")
    size = sizes(config, defaults={"head_dim": 256, "num_kv_heads": 4})
    layers = size["num_layers"]
    kinds = layer_types(config, ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)])
    window = optional_count(config, "sliding_window", 4_096)
    bias = flag(config, "attention_bias")
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_activation", "gelu_pytorch_tanh"),
        attention_scale=number(config, "query_pre_attn_scalar", 256) ** -0.5,
        ropes=(rope_spec(config, size["head_dim"], context_length),),
        layer_ropes=(0,) * layers,
        layer_windows=tuple(window if kind == "sliding_attention" else None for kind in kinds),
        tie_word_embeddings=flag(config, "tie_word_embeddings", True),
        qkv_bias=bias,
        output_bias=bias,
        attention_softcap=optional_number(config, "attn_logit_softcapping", 50.0),
        post_norms=True,
        wide_norms=True,
        embedding_scale=size["hidden_size"] ** 0.5,
        embedding_scale_rounded=True,
        logit_softcap=optional_number(config, "final_logit_softcapping", 30.0),
    )


HF_NORMS: Final = (
    WeightRule("model.norm.weight", "norm", ("hidden",)),
    WeightRule("model.layers.{layer}.input_layernorm.weight", ATTENTION_NORM, ("hidden",)),
    WeightRule(
        "model.layers.{layer}.post_attention_layernorm.weight", ATTENTION_POST_NORM, ("hidden",)
    ),
    WeightRule("model.layers.{layer}.pre_feedforward_layernorm.weight", MLP_NORM, ("hidden",)),
    WeightRule("model.layers.{layer}.post_feedforward_layernorm.weight", MLP_POST_NORM, ("hidden",)),
)

GGUF_POST_NORMS: Final = (
    WeightRule("blk.{layer}.post_attention_norm.weight", ATTENTION_POST_NORM, ("hidden",)),
    WeightRule("blk.{layer}.post_ffw_norm.weight", MLP_POST_NORM, ("hidden",)),
)

GEMMA2 = Architecture(
    "Gemma2ForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *(replace(rule, transform="plus_one") for rule in HF_NORMS)),
    # GGUF files store 1 + w.
    gguf=(*gguf_weights.PROJECTIONS, *gguf_weights.PRE_NORMS, *GGUF_POST_NORMS),
)
