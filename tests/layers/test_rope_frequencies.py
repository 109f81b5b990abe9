"""Frequencies of every scaling, bit for bit or nearly, against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from headway.kernels.torch_backend import TORCH
from headway.layers.rope_frequencies import SCALINGS, RopeSpec, inverse_frequencies
from headway.layers.rotary import Rotary
from headway.models.hf_rope import rope_spec

HEAD_DIM, CONTEXT = 64, 4_096
DIVISORS = [1.0 + i / 10 for i in range(HEAD_DIM // 2)]
LONG_DIVISORS = [1.0 + i / 3 for i in range(HEAD_DIM // 2)]
SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 3.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 512},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1_024},
    "yarn, all fields": {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 256, "beta_fast": 20.0, "beta_slow": 2.0,
                         "truncate": False, "mscale": 0.7, "mscale_all_dim": 1.3},
    "yarn, own factor": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 2_048, "attention_factor": 1.5},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "longrope": {"rope_type": "longrope", "short_factor": DIVISORS, "long_factor": LONG_DIVISORS, "original_max_position_embeddings": 1_024},
    "longrope, factor": {"rope_type": "longrope", "short_factor": DIVISORS, "long_factor": LONG_DIVISORS, "original_max_position_embeddings": 1_024,
                         "factor": 6.0},
    "longrope, own factor": {"rope_type": "longrope", "short_factor": DIVISORS, "long_factor": DIVISORS, "attention_factor": 1.0,
                             "original_max_position_embeddings": CONTEXT},
}  # fmt: skip
# Deployments that serve no more than the original context, more than that, and more than the model knows.
CASES = {f"{name}, {served} served": (settings, served) for name, settings in SETTINGS.items() for served in (1_000, 4_000, 9_000)}


def spec_of(settings: dict[str, Any], served: int) -> RopeSpec:
    return rope_spec({"rope_parameters": settings, "max_position_embeddings": CONTEXT}, HEAD_DIM, served)


def test_every_scaling_is_tested() -> None:
    specs = {spec_of(settings, served).scaling for settings, served in CASES.values()}
    assert specs | {"default"} == set(SCALINGS)


@pytest.mark.parametrize("name", list(CASES))
def test_equals_transformers(name: str) -> None:
    settings, served = CASES[name]
    settings = {**settings, "rope_theta": 50_000.0}
    config = LlamaConfig(
        hidden_size=4 * HEAD_DIM, num_attention_heads=4, max_position_embeddings=CONTEXT, rope_parameters=dict(settings)
    )
    init = ROPE_INIT_FUNCTIONS[settings["rope_type"]]
    expected, attention_factor = init(config, torch.device("cpu"), seq_len=served)
    spec = spec_of(settings, served)
    torch.testing.assert_close(inverse_frequencies(spec, HEAD_DIM), expected, atol=0, rtol=3e-7)
    assert spec.attention_factor == pytest.approx(attention_factor)


def test_a_part_of_a_head_that_no_float_holds_exactly() -> None:
    config = {"max_position_embeddings": CONTEXT, "partial_rotary_factor": 30 / 44}
    assert rope_spec(config, 44, CONTEXT, default_fraction=1.0).rotary_dim == 30


def test_tables_carry_sign_and_attention_factor() -> None:
    tables = Rotary(TORCH, RopeSpec(10_000.0, attention_factor=2.0), 8).tables(torch.tensor([0, 5]), torch.float32)
    angles = 5 * inverse_frequencies(RopeSpec(10_000.0), 8)
    assert tables.cos.shape == tables.sin.shape == (2, 1, 8)
    torch.testing.assert_close(tables.cos[1, 0], torch.cat((angles.cos(), angles.cos())) * 2)
    torch.testing.assert_close(tables.sin[1, 0], torch.cat((-angles.sin(), angles.sin())) * 2)
