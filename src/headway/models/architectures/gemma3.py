"""Gemma3ForCausalLM: the text models of Gemma 3.

Five layers with a window and a rotation of their own to one that sees everything; norms that scale by 1 + w in float32,
also behind attention and feed-forward; embeddings times sqrt(hidden).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.errors import NotBuiltError
from headway.layers.rope_frequencies import RopeSpec
from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.architectures import gemma2
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import (
    activation,
    count,
    flag,
    layer_types,
    number,
    optional_count,
    optional_number,
    sizes,
)
from headway.models.hf_rope import RopeSizes, rope_settings, rope_sizes, scaled_rope

_GLOBAL_THETA: Final = 1_000_000.0
_LOCAL_THETA: Final = 10_000.0


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    if flag(config, "use_bidirectional_attention"):
        raise NotBuiltError("Gemma 3 with bidirectional attention", param="use_bidirectional_attention")
    size = sizes(config, defaults={"head_dim": 256})
    pattern = count(config, "sliding_window_pattern", 6)
    every = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(size["num_layers"])]
    local = [kind == "sliding_attention" for kind in layer_types(config, every)]
    window = optional_count(config, "sliding_window", 4_096)
    bias = flag(config, "attention_bias")
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_activation", "gelu_pytorch_tanh"),
        attention_scale=number(config, "query_pre_attn_scalar", 256) ** -0.5,
        ropes=_ropes(config, rope_sizes(config, size["head_dim"], context_length)),
        layer_ropes=tuple(int(is_local) for is_local in local),
        layer_windows=tuple(window if is_local else None for is_local in local),
        tie_word_embeddings=flag(config, "tie_word_embeddings", True),
        qkv_bias=bias,
        output_bias=bias,
        qk_norm="heads",
        post_norms=True,
        wide_norms=True,
        embedding_scale=size["hidden_size"] ** 0.5,
        embedding_scale_rounded=True,
        logit_softcap=optional_number(config, "final_logit_softcapping"),
    )


def _ropes(config: Mapping[str, Any], sizes: RopeSizes) -> tuple[RopeSpec, RopeSpec]:
    """Global, local. transformers 4 scales only the global one; transformers 5 nests one object for each."""
    nested = rope_settings(config, "rope_parameters")
    settings = {**rope_settings(nested, "full_attention"), **rope_settings(config, "rope_scaling")}
    local = rope_settings(nested, "sliding_attention")
    return (
        scaled_rope(settings, number(config, "rope_theta", _GLOBAL_THETA), sizes),
        scaled_rope(local, number(config, "rope_local_base_freq", _LOCAL_THETA), sizes),
    )


_HF_NORMS: Final = (*gemma2.HF_NORMS, *hf_weights.QK_NORMS)

GEMMA3 = Architecture(
    "Gemma3ForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *(replace(rule, transform="plus_one") for rule in _HF_NORMS)),
    # GGUF files store 1 + w.
    gguf=(*gguf_weights.PROJECTIONS, *gguf_weights.PRE_NORMS, *gguf_weights.QK_NORMS, *gemma2.GGUF_POST_NORMS),
)
