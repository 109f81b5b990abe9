"""MistralForCausalLM: Llama's shape with a window over all layers, or over those that the config names (Ministral)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import layer_types, optional_count


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    window = optional_count(config, "sliding_window", 4_096)  # the default of transformers; null means no window
    plain = llama.configure({**config, "attention_bias": False, "mlp_bias": False}, context_length)
    kinds = layer_types(config, ["sliding_attention"] * plain.num_layers)
    return replace(plain, layer_windows=tuple(window if kind == "sliding_attention" else None for kind in kinds))


MISTRAL = Architecture("MistralForCausalLM", configure, safetensors=llama.LLAMA.safetensors, gguf=llama.LLAMA.gguf)
