"""Qwen3MoeForCausalLM: Qwen 3 with mixtures of experts in some or all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.decoder_config import DecoderConfig, Experts
from headway.models.expert_weights import GGUF_EXPERTS, HF_EXPERTS
from headway.models.hf_experts import routing, sparse_layers
from headway.models.hf_fields import count, flag, optional_count


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    plain = llama.configure({"num_key_value_heads": 4, **config, "mlp_bias": False}, context_length)
    # Unlike the dense models, all layers have the window if one has.
    window = optional_count(config, "sliding_window", 4_096) if flag(config, "use_sliding_window") else None
    chosen = routing(
        config, ("num_experts", "num_local_experts"), layers=plain.num_layers, experts=128, chosen=8,
        renormalized=flag(config, "norm_topk_prob"),
    )  # fmt: skip
    size = count(config, "moe_intermediate_size", 768)
    return replace(
        plain,
        qk_norm="heads",
        layer_windows=(window,) * plain.num_layers,
        experts=Experts(chosen, size, sparse_layers(config, plain.num_layers)),
    )


QWEN3_MOE = Architecture(
    "Qwen3MoeForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, HF_EXPERTS, *hf_weights.PRE_NORMS, *hf_weights.QK_NORMS),
    gguf=(*gguf_weights.PROJECTIONS, *GGUF_EXPERTS, *gguf_weights.PRE_NORMS, *gguf_weights.QK_NORMS),
)
