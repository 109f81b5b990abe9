"""Qwen3ForCausalLM: Qwen 3 dense. Queries and keys are normalised head by head before they are rotated."""

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
    head_dim = 128 if config.get("head_dim") is None else config["head_dim"]  # not hidden / heads
    plain = llama.configure({**config, "head_dim": head_dim, "mlp_bias": False}, context_length)
    return replace(plain, qk_norm="heads", layer_windows=qwen_windows(config, plain.num_layers))


QWEN3 = Architecture(
    "Qwen3ForCausalLM",
    configure,
    safetensors=(*hf_weights.PROJECTIONS, *hf_weights.PRE_NORMS, *hf_weights.QK_NORMS),
    gguf=(*gguf_weights.PROJECTIONS, *gguf_weights.PRE_NORMS, *gguf_weights.QK_NORMS),
)
