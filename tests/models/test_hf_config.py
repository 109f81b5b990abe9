"""Both spellings of rotary settings, and defaults of the architectures."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from headway.errors import ArtifactError, NotBuiltError
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


def configure(name: str, config: dict[str, Any], context_length: int = 512) -> DecoderConfig:
    return architecture(name).configure(config, context_length)


def test_transformers_4_and_5_spell_the_same_rope() -> None:
    old = configure("LlamaForCausalLM", {**LLAMA, "rope_theta": 5e5, "rope_scaling": SCALED})
    new = configure("LlamaForCausalLM", {**LLAMA, "rope_parameters": {**SCALED, "rope_theta": 5e5}})
    assert old == new
    assert old.ropes == (RopeSpec(5e5, "llama3", factor=8.0, original_context=64),)


def test_the_oldest_spelling_of_the_type() -> None:
    config = configure("LlamaForCausalLM", {**LLAMA, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert config.ropes == (RopeSpec(10_000.0, "linear", factor=2.0),)


def test_dynamic_scaling_follows_the_longest_sequence_that_is_served() -> None:
    """Not the length of each: keys in the cache are shared between sequences of any length."""
    scaled = {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
    assert configure("LlamaForCausalLM", scaled, 512).ropes == (RopeSpec(10_000.0),)
    assert configure("LlamaForCausalLM", scaled, 1_024).ropes == (RopeSpec(10_000.0, "dynamic", factor=3.0),)


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
        ("Gemma2ForCausalLM", Gemma2Config), ("Phi3ForCausalLM", Phi3Config), ("GraniteForCausalLM", GraniteConfig),
        ("Olmo2ForCausalLM", Olmo2Config), ("MixtralForCausalLM", MixtralConfig), ("Qwen3MoeForCausalLM", Qwen3MoeConfig),
    ],
)  # fmt: skip
def test_fields_that_a_config_leaves_out_get_the_defaults_of_transformers(name: str, kind: Any) -> None:
    """A sparse config.json and the same after transformers filled in everything mean the same model."""
    sparse = {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"}
    assert configure(name, sparse) == configure(name, kind(**sparse).to_dict())


@pytest.mark.parametrize(("name", "kind"), [("Gemma2ForCausalLM", Gemma2Config), ("MixtralForCausalLM", MixtralConfig)])
def test_defaults_of_key_heads_and_theta(name: str, kind: Any) -> None:
    sparse = {**LLAMA, "num_attention_heads": 16}
    del sparse["num_key_value_heads"], sparse["rms_norm_eps"]
    assert configure(name, sparse) == configure(name, kind(**sparse).to_dict())


def test_a_null_softcap_is_none_and_a_missing_one_the_default() -> None:
    assert configure("Gemma2ForCausalLM", LLAMA).attention_softcap == 50.0
    assert configure("Gemma2ForCausalLM", {**LLAMA, "attn_logit_softcapping": None}).attention_softcap is None


def test_the_first_phi_configs_say_yarn_and_mean_longrope() -> None:
    factors = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    base = {**LLAMA, "original_max_position_embeddings": 128}
    old = configure("Phi3ForCausalLM", {**base, "rope_scaling": {"type": "yarn", **factors}})
    assert old == configure("Phi3ForCausalLM", {**base, "rope_parameters": {"rope_type": "longrope", **factors}})
    assert old.ropes[0].divisors == (2.0,) * 8
    del base["original_max_position_embeddings"]
    unsaid = {**base, "rope_scaling": {"type": "su", **factors}}
    chosen = [configure("Phi3ForCausalLM", unsaid, served).ropes[0].divisors for served in (4_096, 4_097)]
    assert chosen == [(1.0,) * 8, (2.0,) * 8]


@pytest.mark.parametrize(
    ("name", "field", "value", "error"),
    [
        ("Gemma2ForCausalLM", "use_bidirectional_attention", True, NotBuiltError),
        ("Gemma2ForCausalLM", "attn_logit_softcapping", 0.0, ArtifactError),
        ("Gemma2ForCausalLM", "layer_types", ["chunked_attention"] * 2, ArtifactError),
        ("Phi3ForCausalLM", "hidden_act", "relu", NotBuiltError),
        ("Phi3ForCausalLM", "partial_rotary_factor", 0.35, ArtifactError),  # an odd number of dimensions
        ("Phi3ForCausalLM", "sliding_window", -1, ArtifactError),
        ("GraniteForCausalLM", "logits_scaling", 0, ArtifactError),
        ("GraniteForCausalLM", "partial_rotary_factor", 0.5, NotBuiltError),
        ("Olmo2ForCausalLM", "hidden_act", "gelu", NotBuiltError),
        ("MixtralForCausalLM", "num_experts_per_tok", 9, ArtifactError),
        ("MixtralForCausalLM", "num_local_experts", "8", ArtifactError),
        ("Qwen3MoeForCausalLM", "norm_topk_prob", "yes", ArtifactError),
    ],
)
def test_configs_that_cannot_run_are_refused_by_name(name: str, field: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        configure(name, {**LLAMA, field: value})
    assert getattr(caught.value, "param", None) == field
