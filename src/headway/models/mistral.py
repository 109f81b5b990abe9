"""MistralForCausalLM: Llama's shape with a window over all layers, when the config has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models import llama
from headway.models.architecture import Architecture
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import count


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    # The default of transformers for a config without the field; null means no window.
    window = count(config, "sliding_window", 4_096) if config.get("sliding_window", 4_096) is not None else None
    plain = llama.configure({**config, "attention_bias": False, "mlp_bias": False}, context_length)
    return replace(plain, layer_windows=(window,) * plain.num_layers)


MISTRAL = Architecture("MistralForCausalLM", configure, safetensors=llama.LLAMA.safetensors, gguf=llama.LLAMA.gguf)
