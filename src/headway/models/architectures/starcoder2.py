"""Starcoder2ForCausalLM: StarCoder 2. Mistral's shape with LayerNorm, biases and a feed-forward without a gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import ACTIVATIONS, SIZE_FIELDS, activation, flag, optional_count, sizes
from headway.models.hf_rope import rope_spec
from headway.models.module_paths import MLP_DOWN, MLP_UP
from headway.models.weight_rules import WeightRule, with_bias


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    size = sizes(config, names={**SIZE_FIELDS, "norm_epsilon": "norm_epsilon"}, epsilon=1e-5, defaults={"num_kv_heads": 2})
    layers, bias = size["num_layers"], flag(config, "use_bias", True)
    window = optional_count(config, "sliding_window")
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_act", "gelu_pytorch_tanh", ACTIVATIONS),
        attention_scale=size["head_dim"] ** -0.5,
        ropes=(rope_spec(config, size["head_dim"], context_length),),
        layer_ropes=(0,) * layers,
        layer_windows=(window,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings", True),
        norm="layer",
        gated_mlp=False,
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
    )


_MLP: Final = (
    *with_bias(WeightRule("model.layers.{layer}.mlp.c_fc.weight", MLP_UP, ("ffn", "hidden"), "rows"), "mlp_bias"),
    *with_bias(WeightRule("model.layers.{layer}.mlp.c_proj.weight", MLP_DOWN, ("hidden", "ffn"), "columns"), "mlp_bias"),
)

STARCODER2: Final = Architecture(
    "Starcoder2ForCausalLM",
    configure,
    safetensors=(*hf_weights.ENDS, *hf_weights.ATTENTION, *hf_weights.LAYER_NORMS, *_MLP),
    gguf=(*gguf_weights.ENDS, *gguf_weights.ATTENTION, *gguf_weights.LAYER_NORMS, *gguf_weights.PLAIN_MLP),
)
