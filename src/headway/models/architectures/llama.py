"""LlamaForCausalLM: Llama 2 and 3, SmolLM and SmolLM2, TinyLlama, and many others that keep its shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import activation, flag, sizes
from headway.models.hf_rope import rope_spec


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    size = sizes(config)
    layers = size["num_layers"]
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_act", "silu"),
        attention_scale=size["head_dim"] ** -0.5,
        ropes=(rope_spec(config, size["head_dim"], context_length),),
        layer_ropes=(0,) * layers,
        layer_windows=(None,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings"),
        qkv_bias=flag(config, "attention_bias"),
        output_bias=flag(config, "attention_bias"),
        mlp_bias=flag(config, "mlp_bias"),
    )


LLAMA = Architecture(
    "LlamaForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *hf_weights.PRE_NORMS),
    gguf=(*gguf_weights.PERMUTED_PROJECTIONS, *gguf_weights.PRE_NORMS),
)
