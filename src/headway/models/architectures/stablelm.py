"""StableLmForCausalLM: StableLM 2 and StableLM 3B. Llama's shape with LayerNorm; a quarter of every head turns.

Some normalise queries and keys, every head with a weight of its own; some compute attention and feed-forward side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import SIZE_FIELDS, activation, flag, sizes
from headway.models.hf_rope import rope_spec
from headway.models.module_paths import HEAD_NORM
from headway.models.weight_rules import WeightRule


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    whole = {**config, "head_dim": None}  # always hidden / heads
    size = sizes(whole, names={**SIZE_FIELDS, "norm_epsilon": "layer_norm_eps"}, epsilon=1e-5, defaults={"num_kv_heads": 32})
    layers, parallel = size["num_layers"], flag(config, "use_parallel_residual")
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_act", "silu"),
        attention_scale=size["head_dim"] ** -0.5,
        ropes=(rope_spec(config, size["head_dim"], context_length, default_fraction=0.25),),
        layer_ropes=(0,) * layers,
        layer_windows=(None,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings"),
        norm="layer",
        parallel_residual=parallel,
        mlp_norm=not parallel,
        qkv_bias=flag(config, "use_qkv_bias"),
        qk_norm="heads" if flag(config, "qk_layernorm") else None,
    )


_ATTENTION: Final = "model.layers.{layer}.self_attn"
_HEAD_NORMS: Final = (
    WeightRule(f"{_ATTENTION}.q_layernorm.norms.{{item}}.weight", HEAD_NORM, ("head",), when="qk_norm", items="heads"),
    WeightRule(f"{_ATTENTION}.k_layernorm.norms.{{item}}.weight", HEAD_NORM, ("head",), when="qk_norm", items="kv_heads"),
)

STABLELM: Final = Architecture(
    "StableLmForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *hf_weights.LAYER_NORMS, *_HEAD_NORMS),
    gguf=(*gguf_weights.PROJECTIONS, *gguf_weights.LAYER_NORMS),
    gguf_unconfirmed=lambda config: "norms of queries and keys" if config.qk_norm else None,
)
