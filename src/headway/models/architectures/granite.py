"""GraniteForCausalLM: Granite 3. Llama's shape with factors on embeddings, scores, residuals and logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.models.architecture import Architecture
from headway.models.architectures import llama
from headway.models.decoder_config import DecoderConfig
from headway.models.hf_fields import number


def configure(config: Mapping[str, Any], context_length: int) -> DecoderConfig:
    return replace(
        llama.configure(config, context_length),
        attention_scale=number(config, "attention_multiplier", 1.0),
        embedding_scale=_factor(config, "embedding_multiplier"),
        residual_scale=_factor(config, "residual_multiplier"),
        logit_divisor=_factor(config, "logits_scaling"),
    )


def _factor(config: Mapping[str, Any], name: str) -> float | None:
    value = number(config, name, 1.0)
    return None if value == 1.0 else value


GRANITE = Architecture("GraniteForCausalLM", configure, safetensors=llama.LLAMA.safetensors, gguf=())
