"""MixtralForCausalLM: Mistral's shape with a mixture of experts in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models import hf_weights
from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.decoder_config import DecoderConfig, Experts
from headway.models.expert_weights import HF_EXPERTS
from headway.models.hf_experts import routing
from headway.models.hf_fields import optional_count


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    defaults = {"rms_norm_eps": 1e-5, "num_key_value_heads": 8, "rope_theta": 1e6}
    plain = llama.configure({**defaults, **config, "attention_bias": False, "mlp_bias": False}, context_length)
    window = optional_count(config, "sliding_window")
    layers = plain.num_layers
    names = ("num_local_experts", "num_experts")
    chosen = routing(config, names, layers=layers, experts=8, chosen=2, renormalized=True)
    return replace(
        plain,
        layer_windows=(window,) * layers,
        experts=Experts(chosen, plain.intermediate_size, (True,) * layers),
    )


MIXTRAL = Architecture(
    "MixtralForCausalLM",
    configure,
    safetensors=(*hf_weights.ENDS, *hf_weights.ATTENTION, HF_EXPERTS, *hf_weights.PRE_NORMS),
    gguf=(),
)
