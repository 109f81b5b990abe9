"""Both spellings of rotary settings, and defaults of the architectures."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import Gemma3TextConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from headway.layers.rope_frequencies import RopeSpec
from headway.models.decoder_config import DecoderConfig
from headway.models.registry import architecture

LLAMA = {
    "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
}  # fmt: skip
SCALED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def configure(name: str, config: dict[str, Any]) -> DecoderConfig:
    return architecture(name).configure(config)


def test_transformers_4_and_5_spell_the_same_rope() -> None:
    old = configure("LlamaForCausalLM", {**LLAMA, "rope_theta": 5e5, "rope_scaling": SCALED})
    new = configure("LlamaForCausalLM", {**LLAMA, "rope_parameters": {**SCALED, "rope_theta": 5e5}})
    assert old == new
    assert old.ropes == (RopeSpec(5e5, "llama3", factor=8.0, original_context=64),)


def test_the_oldest_spelling_of_the_type() -> None:
    config = configure("LlamaForCausalLM", {**LLAMA, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert config.ropes == (RopeSpec(10_000.0, "linear", factor=2.0),)


def test_dynamic_scaling_is_none_within_the_context_that_requests_are_held_to() -> None:
    config = configure("LlamaForCausalLM", {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
    assert config.ropes == (RopeSpec(10_000.0),)
    assert config.max_position_embeddings == 512


def test_gemma_scales_only_global_layers_in_both_spellings() -> None:
    base = {**LLAMA, "num_hidden_layers": 7, "sliding_window": 32}
    old = configure(
        "Gemma3ForCausalLM",
        {
            **base,
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    )
    nested = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    assert old == configure("Gemma3ForCausalLM", {**base, "rope_parameters": nested})
    assert old.ropes == (RopeSpec(1e6, "linear", factor=8.0), RopeSpec(1e4))
    assert old.layer_windows == (32,) * 5 + (None, 32)
    assert old.layer_ropes == (1,) * 5 + (0, 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LlamaForCausalLM", LlamaConfig), ("MistralForCausalLM", MistralConfig), ("Qwen2ForCausalLM", Qwen2Config),
        ("Qwen3ForCausalLM", Qwen3Config), ("Gemma3ForCausalLM", Gemma3TextConfig),
    ],
)  # fmt: skip
def test_fields_that_a_config_leaves_out_get_the_defaults_of_transformers(name: str, kind: Any) -> None:
    """A sparse config.json and the same after transformers filled in everything mean the same model."""
    sparse = {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"}
    assert configure(name, sparse) == configure(name, kind(**sparse).to_dict())
