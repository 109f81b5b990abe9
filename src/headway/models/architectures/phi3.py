"""Phi3ForCausalLM: Phi-3 mini and medium, Phi-3.5 mini, Phi-4, Phi-4 mini. Llama's shape with fused projections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import activation, flag, optional_count, sizes
from headway.models.hf_rope import rope_spec

# What transformers takes for a config without the field.
_ORIGINAL_CONTEXT: Final = 4_096


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    size = sizes(config, epsilon=1e-5)
    layers, head_dim = size["num_layers"], size["head_dim"]
    window = optional_count(config, "sliding_window")
    rope = rope_spec(_with_longrope(config), head_dim, context_length, default_fraction=1.0)
    return DecoderConfig(
        **size,
        activation=activation(config, "hidden_act", "silu"),
        attention_scale=head_dim**-0.5,
        ropes=(rope,),
        layer_ropes=(0,) * layers,
        layer_windows=(window,) * layers,
        tie_word_embeddings=flag(config, "tie_word_embeddings"),
    )


def _with_longrope(config: Mapping[str, Any]) -> dict[str, Any]:
    """The first Phi-3 configs call their scaling "yarn" when it is longrope, as transformers knows, too."""
    renamed = dict(config)
    for name in ("rope_scaling", "rope_parameters"):
        settings = config.get(name)
        if isinstance(settings, Mapping):
            kind = settings.get("rope_type", settings.get("type", "default"))
            named = {**settings, "rope_type": "longrope" if kind == "yarn" else kind}
            renamed[name] = {"original_max_position_embeddings": _ORIGINAL_CONTEXT, **named}
    return renamed


PHI3 = Architecture(
    "Phi3ForCausalLM",
    configure,
    safetensors=(*hf_weights.FUSED_PROJECTIONS, *hf_weights.PRE_NORMS),
    gguf=(*gguf_weights.FUSED_PROJECTIONS, *gguf_weights.PRE_NORMS),
)
