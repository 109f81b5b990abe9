"""Configurations of the families with LayerNorm, each in the forms that its checkpoints have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from transformers import (
    FalconConfig,
    GPT2Config,
    GPTNeoXConfig,
    PreTrainedConfig,
    StableLmConfig,
    Starcoder2Config,
)

from tests.models.tiny_sizes import ORIGINAL_CONTEXT, SIZES, TOKENS, WINDOW

LAYERS = 3
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
_MULTI_HEAD = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}


def _starcoder2(**fields: Any) -> PreTrainedConfig:
    return Starcoder2Config(**{**SIZES, "num_hidden_layers": LAYERS, **fields})


def _stablelm(**fields: Any) -> PreTrainedConfig:
    return StableLmConfig(**{**SIZES, "num_hidden_layers": LAYERS, "partial_rotary_factor": 0.5, **fields})


def _gpt_neox(**fields: Any) -> PreTrainedConfig:
    return GPTNeoXConfig(**{**_MULTI_HEAD, "num_hidden_layers": LAYERS, **fields})


def _gpt2(**fields: Any) -> PreTrainedConfig:
    # transformers' GGUF reader knows no other number of positions.
    sizes = {"vocab_size": 160, "n_embd": 64, "n_head": 4, "n_layer": LAYERS, "n_positions": 1_024}
    return GPT2Config(**{**sizes, **TOKENS, **fields})


def _falcon(**fields: Any) -> PreTrainedConfig:
    sizes = {"vocab_size": 160, "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": LAYERS}
    return FalconConfig(**{**sizes, **TOKENS, "max_position_embeddings": 256, **fields})


_NEW_FALCON = {"new_decoder_architecture": True, "num_kv_heads": 2, "ffn_hidden_size": 96}

FAMILIES: dict[str, Callable[[], PreTrainedConfig]] = {
    "starcoder2": partial(_starcoder2, sliding_window=WINDOW),
    "stablelm": partial(_stablelm, use_qkv_bias=True, qk_layernorm=True),
    "gpt_neox": _gpt_neox,
    "gpt2": _gpt2,
    "falcon_7b": _falcon,
    "falcon_40b": partial(_falcon, **_NEW_FALCON),
}

VARIANTS: dict[str, Callable[[], PreTrainedConfig]] = {
    "starcoder2_untied": partial(_starcoder2, use_bias=False, tie_word_embeddings=False, hidden_act="relu"),
    "starcoder2_full": _starcoder2,
    "stablelm_2": partial(_stablelm, tie_word_embeddings=True, use_qkv_bias=True, partial_rotary_factor=0.25),
    "stablelm_12b": partial(_stablelm, use_parallel_residual=True, qk_layernorm=True, num_key_value_heads=1),
    "stablelm_parallel": partial(_stablelm, use_parallel_residual=True, rope_parameters={**_YARN, "partial_rotary_factor": 0.25}),
    "gpt_neox_sequential": partial(
        _gpt_neox, use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True, hidden_act="gelu_fast",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0},
    ),
    "gpt2_untied": partial(_gpt2, tie_word_embeddings=False, n_inner=96, scale_attn_weights=False, activation_function="silu"),
    "falcon_7b_bias": partial(_falcon, bias=True, tie_word_embeddings=False),
    "falcon_rw": partial(_falcon, multi_query=False, parallel_attn=False, bias=True, alibi=True, num_attention_heads=6, hidden_size=96),
    "falcon_sequential": partial(_falcon, multi_query=False, parallel_attn=False),
    "falcon_11b": partial(_falcon, **_NEW_FALCON, num_ln_in_parallel_attn=1, tie_word_embeddings=False),
    "falcon_180b_bias": partial(_falcon, **_NEW_FALCON, bias=True, rope_parameters=_YARN, activation="gelu_new"),
}  # fmt: skip
