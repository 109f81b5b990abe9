"""Qwen2ForCausalLM: Qwen 2 and 2.5. Llama's shape with biases on query, key and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models import gguf_weights, hf_weights
from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.architectures.qwen_windows import qwen_windows
from headway.models.decoder_config import DecoderConfig


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    plain = llama.configure({**config, "attention_bias": False, "mlp_bias": False}, context_length)
    return replace(plain, qkv_bias=True, layer_windows=qwen_windows(config, plain.num_layers))


QWEN2 = Architecture(
    "Qwen2ForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *hf_weights.PRE_NORMS),
    gguf=(*gguf_weights.PROJECTIONS, *gguf_weights.PRE_NORMS),
)
