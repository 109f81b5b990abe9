"""GPTNeoXForCausalLM: GPT-NeoX 20B, Pythia, Dolly 2, RedPajama. Attention and feed-forward side by side, or one after the
other; query, key and value of a head lie together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import ACTIVATIONS, SIZE_FIELDS, activation, flag, sizes
from headway.models.hf_rope import rope_spec
from headway.models.module_paths import ATTENTION_NORM, ATTENTION_OUTPUT, MLP_DOWN, MLP_NORM, MLP_UP, QKV
from headway.models.weight_rules import OneOf, WeightRule, with_bias


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    # One key head per query head, and head_dim always hidden / heads.
    whole = {**config, "num_key_value_heads": None, "head_dim": None}
    size = sizes(whole, names={**SIZE_FIELDS, "norm_epsilon": "layer_norm_eps"}, epsilon=1e-5)
    layers, bias = size["num_layers"], flag(config, "attention_bias", True)
    # The names of transformers 4.
    turned = {**config, "rope_theta": config.get("rotary_emb_base"), "partial_rotary_factor": config.get("rotary_pct")}
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_act", "gelu", ACTIVATIONS),
        attention_scale=size["head_dim"] ** -0.5,
        ropes=(rope_spec(turned, size["head_dim"], context_length, default_fraction=0.25),),
        layer_ropes=(0,) * layers,
        layer_windows=(None,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings"),
        norm="layer",
        gated_mlp=False,
        parallel_residual=flag(config, "use_parallel_residual", True),
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=True,
    )


_LAYER: Final = "gpt_neox.layers.{layer}"

GPT_NEOX: Final = Architecture(
    "GPTNeoXForCausalLM",
    configure,
    safetensors=(
        WeightRule("gpt_neox.embed_in.weight", "embedding", ("vocab", "hidden"), "rows"),
        OneOf(tuple((WeightRule(f"{name}.weight", "head", ("vocab", "hidden"), "rows"),) for name in ("embed_out", "lm_head"))),
        *with_bias(WeightRule("gpt_neox.final_layer_norm.weight", "norm", ("hidden",))),
        *with_bias(WeightRule(f"{_LAYER}.input_layernorm.weight", ATTENTION_NORM, ("hidden",))),
        *with_bias(
            WeightRule(f"{_LAYER}.attention.query_key_value.weight", QKV, ("qkv", "hidden"), "rows", transform="grouped_qkv"),
            "qkv_bias",
        ),
        *with_bias(
            WeightRule(f"{_LAYER}.attention.dense.weight", ATTENTION_OUTPUT, ("hidden", "q"), "columns"), "output_bias"
        ),
        *with_bias(WeightRule(f"{_LAYER}.post_attention_layernorm.weight", MLP_NORM, ("hidden",))),
        *with_bias(WeightRule(f"{_LAYER}.mlp.dense_h_to_4h.weight", MLP_UP, ("ffn", "hidden"), "rows")),
        *with_bias(WeightRule(f"{_LAYER}.mlp.dense_4h_to_h.weight", MLP_DOWN, ("hidden", "ffn"), "columns")),
    ),
    gguf=(),
)
