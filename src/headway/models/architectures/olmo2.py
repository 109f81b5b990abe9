"""Olmo2ForCausalLM: OLMo 2. Norms behind attention and feed-forward instead of in front, and over all query heads, and all
key heads, of a token at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.models import hf_weights
from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.decoder_config import DecoderConfig
from headway.models.module_paths import ATTENTION_POST_NORM, HEAD_NORM, MLP_POST_NORM
from headway.models.weight_rules import WeightRule


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    plain = llama.configure({"rms_norm_eps": 1e-5, **config, "mlp_bias": False}, context_length)
    return replace(plain, pre_norms=False, post_norms=True, wide_norms=True, qk_norm="rows")


_NORMS: Final = (
    WeightRule("model.norm.weight", "norm", ("hidden",)),
    WeightRule("model.layers.{layer}.self_attn.q_norm.weight", HEAD_NORM, ("q",), "rows"),
    WeightRule("model.layers.{layer}.self_attn.k_norm.weight", HEAD_NORM, ("kv",), "rows"),
    WeightRule(
        "model.layers.{layer}.post_attention_layernorm.weight", ATTENTION_POST_NORM, ("hidden",)
    ),
    WeightRule("model.layers.{layer}.post_feedforward_layernorm.weight", MLP_POST_NORM, ("hidden",)),
)

OLMO2 = Architecture("Olmo2ForCausalLM", configure, safetensors=(*hf_weights.PROJECTIONS, *_NORMS), gguf=())
