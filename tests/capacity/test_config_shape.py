"""Parameter counts from a configuration alone, against the modules that transformers builds of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from headway.capacity.config_shape import config_shape
from headway.capacity.model_shape import KvLayers
from headway.errors import CapacityError
from tests.capacity.shapes import LLAMA, shape

BASE: dict[str, Any] = {
    "num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 176, "num_attention_heads": 8, "num_key_value_heads": 2,
    "vocab_size": 1000, "max_position_embeddings": 128, "pad_token_id": 0,
}  # fmt: skip
MULTI = {name: value for name, value in BASE.items() if name != "num_key_value_heads"}
MOE = {"moe_intermediate_size": 32, "num_experts_per_tok": 2}
LATENT = {"kv_lora_rank": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "qk_nope_head_dim": 16, "num_key_value_heads": 8,
          "n_routed_experts": 4, "first_k_dense_replace": 1, **MOE}  # fmt: skip
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("llama", BASE), ("llama", BASE | {"tie_word_embeddings": True}), ("mistral", BASE), ("qwen2", BASE), ("qwen3", BASE | {"head_dim": 32}),
    ("gemma2", BASE | {"head_dim": 16}), ("gemma3_text", BASE | {"head_dim": 16}), ("phi3", BASE), ("phi", BASE), ("gpt_neox", MULTI),
    ("gpt2", {"n_layer": 4, "n_embd": 64, "n_head": 8, "vocab_size": 1000, "n_positions": 128}),
    ("opt", {"num_hidden_layers": 4, "hidden_size": 64, "ffn_dim": 176, "num_attention_heads": 8, "vocab_size": 1000, "word_embed_proj_dim": 64}),
    ("falcon", {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000}),
    ("starcoder2", BASE), ("stablelm", BASE), ("olmo2", BASE), ("granite", BASE), ("cohere2", BASE), ("glm4", BASE | {"head_dim": 8}),
    ("smollm3", BASE), ("exaone4", BASE), ("seed_oss", BASE | {"head_dim": 8}), ("hunyuan_v1_dense", BASE | {"head_dim": 8}), ("ernie4_5", BASE),
    ("mixtral", BASE | {"num_local_experts": 4, "num_experts_per_tok": 2}), ("granitemoe", BASE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    ("qwen2_moe", BASE | MOE | {"num_experts": 4, "shared_expert_intermediate_size": 48}), ("qwen3_moe", BASE | MOE | {"num_experts": 4, "head_dim": 16}),
    ("gpt_oss", BASE | {"num_local_experts": 4, "head_dim": 16}),
    ("glm4_moe", BASE | MOE | {"n_routed_experts": 4, "head_dim": 8, "n_group": 1, "topk_group": 1}),
    ("deepseek_v3", BASE | LATENT | {"n_group": 1, "topk_group": 1, "q_lora_rank": 24, "n_shared_experts": 1}),
    ("deepseek_v2", BASE | LATENT | {"q_lora_rank": None, "n_shared_experts": 2}),
    ("qwen3_next", BASE | MOE | {"num_experts": 4, "head_dim": 16, "shared_expert_intermediate_size": 48, "linear_num_key_heads": 2,
                                 "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16}),
    ("qwen3_5_text", BASE), ("lfm2", BASE | {"layer_types": ["conv", "full_attention", "conv", "conv"]}),
    ("jamba", BASE | {"num_experts": 4, "attn_layer_period": 4, "attn_layer_offset": 1, "mamba_d_state": 16}),
    ("bamba", BASE | {"attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16}),
    ("mamba", {"num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 1000, "state_size": 16}),
    ("bert", MULTI | {"type_vocab_size": 2}), ("roberta", MULTI | {"type_vocab_size": 1}), ("modernbert", MULTI),
]  # fmt: skip
ENCODERS = ("bert", "roberta", "modernbert")


@pytest.mark.parametrize(("model_type", "fields"), CONFIGS, ids=[f"{kind}{'' if i != 1 else '-tied'}" for i, (kind, _) in enumerate(CONFIGS)])
def test_parameters_are_those_of_transformers(model_type: str, fields: dict[str, Any]) -> None:
    config = transformers.CONFIG_MAPPING[model_type](**fields)
    kind = transformers.AutoModel if model_type in ENCODERS else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(config)
    real = sum({id(parameter): parameter.numel() for parameter in model.parameters()}.values())
    found = config_shape(config.to_dict(), model_type)
    assert found.parameters == real
    assert found.kind == ("encoder" if model_type in ENCODERS else "decoder")
    assert 0 < found.active <= real


@pytest.mark.parametrize(("model_type", "fields"), [case for case in CONFIGS if case[0] in ("llama", "mistral", "gemma2", "qwen3", "deepseek_v2", "deepseek_v3", "qwen3_moe", "granite")])
def test_the_cache_is_what_transformers_keeps(model_type: str, fields: dict[str, Any]) -> None:
    """Of five tokens, in every layer; of latent attention the compressed vectors."""
    config = transformers.CONFIG_MAPPING[model_type](**fields)
    config.dtype = torch.float32
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        cache = model(torch.ones(1, 5, dtype=torch.int64), use_cache=True).past_key_values
    kept = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    assert config_shape(config.to_dict(), model_type).cache_numbers(5) == kept


def test_active_parameters_leave_out_what_a_token_does_not_meet() -> None:
    dense, tied, sparse = shape("grouped"), shape("tied"), shape("experts")
    assert dense.parameters - dense.active == 1000 * 64  # rows of the input table
    assert tied.active == tied.parameters  # which is the head here
    assert sparse.parameters - sparse.active == 1000 * 64 + 2 * 2 * 3 * 64 * 176  # two of four experts in two layers


def test_windows_and_hybrids_split_the_layers() -> None:
    assert shape("windowed", num_hidden_layers=6).kv == (KvLayers(3, 2, 32), KvLayers(3, 2, 32, 64))
    hybrid = shape("hybrid")
    assert hybrid.kv == (KvLayers(1, 2, 16),)
    assert hybrid.state_numbers == 128 * 16 + 128 * 3  # one layer: state and convolution of an inner width of 128


def test_a_window_stops_growing_and_a_latent_is_not_divided() -> None:
    windowed, latent = shape("windowed"), shape("latent")
    assert windowed.cache_numbers(1000) - windowed.cache_numbers(999) == 2 * 32
    assert windowed.cache_numbers(1000, windows=False) == 1000 * 2 * 2 * 32
    assert latent.numbers_per_token() == latent.numbers_per_token(8) == 2 * (16 + 8)


def test_key_heads_are_divided_and_then_repeated() -> None:
    assert [shape("grouped").numbers_per_token(ranks) for ranks in (1, 2, 4, 8)] == [64, 32, 32, 32]


@pytest.mark.parametrize("missing", ["num_hidden_layers", "hidden_size", "vocab_size"])
def test_what_decides_must_be_there(missing: str) -> None:
    with pytest.raises(CapacityError) as caught:
        config_shape({name: value for name, value in LLAMA.items() if name != missing}, "x")
    assert caught.value.reason == "unknown_geometry"
    assert missing in caught.value.message


@pytest.mark.parametrize("value", [None, "4", -1, 0, 2.5, True, 1 << 50, [4]])
def test_a_size_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(CapacityError):
        config_shape(LLAMA | {"num_hidden_layers": value}, "x")
