"""Configs of StarCoder 2, StableLM, GPT-NeoX, GPT-2 and Falcon: defaults, older spellings, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import FalconConfig, GPT2Config, GPTNeoXConfig, StableLmConfig, Starcoder2Config

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError, ConfigError, NotBuiltError
from headway.layers.rope_frequencies import RopeSpec
from headway.models.decoder_config import DecoderConfig
from headway.models.load import load_model
from headway.models.registry import architecture
from tests.models.tiny_models import TinyModel

USUAL = {
    "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 512,
}  # fmt: skip
GPT2 = {"vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512}
FALCON = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = {**USUAL, "num_key_value_heads": 2}
NEW_FALCON = {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}


def configure(name: str, config: dict[str, Any], context_length: int = 512) -> DecoderConfig:
    return architecture(name).configure(config, context_length)


@pytest.mark.parametrize(
    ("name", "kind", "sparse"),
    [
        ("Starcoder2ForCausalLM", Starcoder2Config, USUAL), ("StableLmForCausalLM", StableLmConfig, GROUPED),
        ("GPTNeoXForCausalLM", GPTNeoXConfig, USUAL), ("GPT2LMHeadModel", GPT2Config, GPT2),
        ("FalconForCausalLM", FalconConfig, FALCON), ("FalconForCausalLM", FalconConfig, NEW_FALCON),
        ("FalconForCausalLM", FalconConfig, {**FALCON, "new_decoder_architecture": True}),
    ],
)  # fmt: skip
def test_fields_that_a_config_leaves_out_get_the_defaults_of_transformers(
    name: str, kind: Any, sparse: dict[str, Any]
) -> None:
    """A sparse config.json and the same after transformers filled in everything mean the same model."""
    assert configure(name, sparse) == configure(name, kind(**sparse).to_dict())


def test_gpt_neox_spells_its_rotation_in_its_own_way() -> None:
    old = configure("GPTNeoXForCausalLM", {**USUAL, "rotary_pct": 0.5, "rotary_emb_base": 500})
    new = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}
    assert old == configure("GPTNeoXForCausalLM", {**USUAL, "rope_parameters": new})
    assert old.ropes == (RopeSpec(500.0, rotary_dim=8),)


def test_stablelm_of_transformers_4() -> None:
    old = configure("StableLmForCausalLM", {**GROUPED, "rope_theta": 500, "partial_rotary_factor": 0.5, "rope_scaling": None})
    new = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}
    assert old == configure("StableLmForCausalLM", {**GROUPED, "rope_parameters": new})


@pytest.mark.parametrize(
    ("name", "config", "field", "value"),
    [
        ("FalconForCausalLM", NEW_FALCON, "parallel_attn", False),
        ("FalconForCausalLM", NEW_FALCON, "num_ln_in_parallel_attn", 3),
        ("FalconForCausalLM", NEW_FALCON, "num_kv_heads", 3),
        ("FalconForCausalLM", FALCON, "num_ln_in_parallel_attn", 2),
        ("FalconForCausalLM", FALCON, "ffn_hidden_size", -1),
        ("GPT2LMHeadModel", GPT2, "n_embd", "64"),
        ("GPT2LMHeadModel", GPT2, "n_head", 0),
        ("GPT2LMHeadModel", GPT2, "layer_norm_epsilon", 0),
        ("GPTNeoXForCausalLM", USUAL, "layer_norm_eps", float("inf")),
        ("StableLmForCausalLM", GROUPED, "partial_rotary_factor", 1.5),
        ("StableLmForCausalLM", GROUPED, "partial_rotary_factor", 0.2),  # 3 of 16 dimensions
        ("StableLmForCausalLM", GROUPED, "use_parallel_residual", "yes"),
        ("Starcoder2ForCausalLM", GROUPED, "sliding_window", -4),
    ],
)  # fmt: skip
def test_impossible_configs_are_refused_by_the_name_of_the_field(
    name: str, config: dict[str, Any], field: str, value: object
) -> None:
    with pytest.raises(ArtifactError) as caught:
        configure(name, {**config, field: value})
    assert (caught.value.reason, caught.value.param) == ("invalid_model_config", field)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("name", "config", "field", "value"),
    [
        ("FalconForCausalLM", FALCON, "activation", "quick_gelu"),
        ("GPT2LMHeadModel", GPT2, "scale_attn_by_inverse_layer_idx", True),
        ("GPT2LMHeadModel", GPT2, "add_cross_attention", True),
        ("GPT2LMHeadModel", GPT2, "activation_function", "mish"),
        ("GPTNeoXForCausalLM", USUAL, "hidden_act", "relu2"),
        ("StableLmForCausalLM", GROUPED, "hidden_act", "gelu"),
        ("Starcoder2ForCausalLM", GROUPED, "hidden_act", "tanh"),
        ("Starcoder2ForCausalLM", GROUPED, "rope_scaling", {"rope_type": "mrope"}),
    ],
)  # fmt: skip
def test_what_is_not_built_is_refused_by_the_name_of_the_field(
    name: str, config: dict[str, Any], field: str, value: object
) -> None:
    with pytest.raises(NotBuiltError) as caught:
        configure(name, {**config, field: value})
    assert caught.value.param == field


def test_no_context_beyond_the_positions_that_were_learned(tiny: Callable[[str], TinyModel]) -> None:
    card = inspect(str(tiny("gpt2").folder))
    with pytest.raises(ConfigError, match=r"1025.*1024 positions") as caught:
        load_model(card, torch.float32, context_length=1_025)
    assert (caught.value.reason, caught.value.param) == ("max_model_len_too_long", "max_model_len")
    assert load_model(card, torch.float32, context_length=1_024).config.max_position_embeddings == 1_024
    untold = replace(card, context_length=None)
    assert load_model(untold, torch.float32).config.max_position_embeddings == 1_024
