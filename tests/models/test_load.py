"""What load_model refuses, what it reports, and how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError, ConfigError, NotBuiltError
from headway.models.load import load_model
from tests.models.runs import in_chunks
from tests.models.tiny_models import TinyModel

Tiny = Callable[[str], TinyModel]


@pytest.fixture
def card(tiny: Tiny) -> ModelCard:
    return inspect(str(tiny("llama").folder))


def without(card: ModelCard, *names: str) -> ModelCard:
    return replace(card, tensors={name: info for name, info in card.tensors.items() if name not in names})


def refused(card: ModelCard) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        load_model(card, torch.float32)
    return caught.value


def test_missing_tensors_are_all_named(card: ModelCard) -> None:
    names = ("model.layers.1.mlp.up_proj.weight", "model.norm.weight")
    error = refused(without(card, *names))
    assert error.reason == "missing_tensor"
    assert all(name in str(error) for name in names)


def test_a_missing_bias_is_missed(card: ModelCard) -> None:
    assert refused(without(card, "model.layers.0.self_attn.k_proj.bias")).reason == "missing_tensor"


def test_shapes_that_contradict_the_config(card: ModelCard) -> None:
    error = refused(replace(card, config={**card.config, "intermediate_size": 128}))
    assert error.reason == "tensor_shape"
    assert "[96, 64]" in str(error)
    assert "[128, 64]" in str(error)


def test_unknown_architectures_get_the_list_and_the_nearest(card: ModelCard) -> None:
    with pytest.raises(ArtifactError) as caught:
        load_model(replace(card, architecture="Qwen3DenseForCausalLM"), torch.float32, implementation="vllm")
    error = caught.value
    assert error.reason == "unsupported_architecture"
    assert "Gemma3ForCausalLM" in str(error)
    assert "nearest is Qwen3ForCausalLM" in str(error)


def test_formats_without_a_reader_are_not_built(card: ModelCard) -> None:
    with pytest.raises(NotBuiltError, match="exl2"):
        load_model(replace(card, quantization={"quant_method": "exl2"}), torch.float32)


def test_float16_is_refused_with_the_alternative(card: ModelCard) -> None:
    with pytest.raises(ConfigError, match="bfloat16"):
        load_model(card, torch.float16)


def test_a_head_that_is_there_is_used_even_if_the_config_ties(tiny: Tiny) -> None:
    model = tiny("llama")  # has a head of its own
    card = inspect(str(model.folder))
    loaded = load_model(replace(card, config={**card.config, "tie_word_embeddings": True}), torch.float32)
    text = list(range(3, 40))
    assert (in_chunks(loaded, text, 37) - model.logits(text)).abs().max() <= 1e-4


def test_an_untied_model_without_a_head_is_refused(tiny: Tiny) -> None:
    card = inspect(str(tiny("smollm").folder))
    assert refused(replace(card, config={**card.config, "tie_word_embeddings": False})).param == "lm_head.weight"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_key_value_heads", 3), ("hidden_size", 0), ("hidden_size", "64"), ("num_hidden_layers", True),
        ("num_hidden_layers", 100_000), ("head_dim", 15), ("rms_norm_eps", float("nan")), ("tie_word_embeddings", 1),
        ("rope_parameters", [1]), ("rope_parameters", {"rope_type": "linear", "factor": -1}),
        ("rope_parameters", {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}),
        ("rope_parameters", {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [0.0] * 8}),
        ("rope_parameters", {"rope_type": "longrope", "long_factor": [1.0] * 8}),
        ("rope_parameters", {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}),
        ("rope_parameters", {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 1}),
    ],
)  # fmt: skip
def test_impossible_configs(card: ModelCard, field: str, value: object) -> None:
    assert refused(replace(card, config={**card.config, field: value})).reason == "invalid_model_config"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_act", "relu"), ("rope_parameters", {"rope_type": "proportional"}),
        ("rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5}),
    ],
)  # fmt: skip
def test_features_that_are_not_built_are_refused(card: ModelCard, field: str, value: object) -> None:
    with pytest.raises(NotBuiltError):
        load_model(replace(card, config={**card.config, field: value}), torch.float32, implementation="vllm")


@pytest.mark.e2e
def test_memory_of_a_process_that_loads_smollm2() -> None:
    script = (
        "import torch\n"
        "from headway.artifacts.inspect import inspect\n"
        "from headway.models.load import load_model\n"
        "load_model(inspect('smollm2-135m-instruct'), torch.bfloat16)\n"
        "lines = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(lines['VmHWM'].split()[0])\n"  # ru_maxrss would be that of the process that started this one
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) // 1024 < 900
