from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from transformers import AutoConfig

from headway.artifacts.gguf_architectures import ARCHITECTURES
from headway.artifacts.gguf_config import GgufConfig, gguf_config
from headway.artifacts.gguf_files import read_gguf_model
from headway.errors import ArtifactError
from tests.artifacts.model_files import finish, gguf_writer, write_gguf


def _config(path: Path) -> GgufConfig:
    model = read_gguf_model(path)
    return gguf_config(model.metadata, model.tensors, str(path))


def test_llama_metadata_becomes_hf_fields(tmp_path: Path) -> None:
    found = _config(write_gguf(tmp_path / "m.gguf"))
    expected = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": pytest.approx(1e-6),
        "rope_theta": 500000.0, "max_position_embeddings": 256, "vocab_size": 50, "tie_word_embeddings": True, "attention_bias": False,
        "mlp_bias": False, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    assert found.config == expected
    assert found.generation_config == {"bos_token_id": 1, "eos_token_id": 2}
    assert found.problems == ()


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_transformers_accepts_the_config_of_every_architecture(tmp_path: Path, architecture: str) -> None:
    writer = gguf_writer(tmp_path / "m.gguf", architecture)
    writer.add_key_length(16)
    if "moe" in architecture:
        writer.add_expert_count(4)
        writer.add_expert_used_count(2)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)
    config = dict(_config(tmp_path / "m.gguf").config)
    theirs: Any = AutoConfig.for_model(config.pop("model_type"), **config)
    assert theirs.num_hidden_layers == 2
    assert theirs.vocab_size == 50
    assert architecture == "falcon" or getattr(theirs, "head_dim", 16) == 16  # Falcon's is always hidden / heads
    assert theirs.tie_word_embeddings is True
    if architecture == "gpt2":
        return  # knows no rotation
    rope = theirs.rope_parameters
    assert 500000.0 in (rope.get("rope_theta"), rope.get("full_attention", {}).get("rope_theta"))


def test_untied_head_padded_rows_and_biases_are_seen_in_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf_writer(path, tokens=40)
    for name, shape in (("token_embd.weight", (64, 32)), ("output.weight", (64, 32)), ("blk.0.attn_q.bias", (32,))):
        writer.add_tensor(name, np.zeros(shape, np.float32))
    finish(writer)
    config = _config(path).config
    assert config["tie_word_embeddings"] is False
    assert config["vocab_size"] == 64
    assert config["attention_bias"] is True


def test_every_end_token_and_sampling_default_is_kept(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf")
    writer.add_eot_token_id(7)
    writer.add_uint32("tokenizer.ggml.eom_token_id", 2)
    writer.add_float32("general.sampling.temp", 0.5)
    writer.add_int32("general.sampling.top_k", 20)
    finish(writer)
    generation = _config(tmp_path / "m.gguf").generation_config
    assert generation == {"bos_token_id": 1, "eos_token_id": [2, 7], "temperature": 0.5, "top_k": 20}


def test_rope_frequency_tensor_becomes_longrope_factors(tmp_path: Path) -> None:
    factors = np.array([1.0, 1.0, 2.5, 8.0], np.float32)
    scaling = _config(write_gguf(tmp_path / "m.gguf", **{"rope_freqs.weight": factors})).config["rope_scaling"]
    assert scaling == {
        "rope_type": "longrope", "short_factor": factors.tolist(), "long_factor": factors.tolist(), "attention_factor": 1.0,
        "original_max_position_embeddings": 256,
    }  # fmt: skip


def test_rope_frequency_tensor_gives_the_llama3_frequencies_of_transformers(tmp_path: Path) -> None:
    """The converter of llama.cpp stores what HF computes for llama3; our longrope must give the same inverse frequencies."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 64, "rope_theta": 500000.0}  # fmt: skip
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 256}
    wanted, _ = ROPE_INIT_FUNCTIONS["llama3"](LlamaConfig(**sizes, rope_parameters=llama3), "cpu")
    plain = 500000.0 ** -(np.arange(0, 64, 2, dtype=np.float64) / 64)
    factors = (plain / wanted.double().numpy()).astype(np.float32)
    scaling = _config(write_gguf(tmp_path / "m.gguf", **{"rope_freqs.weight": factors})).config["rope_scaling"]
    ours, attention = ROPE_INIT_FUNCTIONS["longrope"](
        LlamaConfig(**sizes, rope_parameters={**scaling, "rope_theta": 500000.0}), "cpu"
    )
    np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=1e-5)
    assert attention == 1.0


def test_bad_rope_factors_are_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", **{"rope_freqs.weight": np.array([1.0, -1.0], np.float32)})
    with pytest.raises(ArtifactError, match="positive"):
        _config(path)


def test_yarn_and_linear_scaling(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf", "qwen3")
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(4.0)
    writer.add_rope_scaling_orig_ctx_len(64)
    finish(writer)
    scaling = _config(tmp_path / "m.gguf").config["rope_scaling"]
    assert scaling == {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def test_gemma3_layers_windows_and_query_scale(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf", "gemma3")
    writer.add_key_length(16)
    writer.add_sliding_window(512)
    finish(writer)
    config = _config(tmp_path / "m.gguf").config
    assert config["layer_types"] == ["sliding_attention"] * 2
    assert (config["query_pre_attn_scalar"], config["sliding_window"], config["rope_local_base_freq"]) == (
        16,
        512,
        10000.0,
    )


def test_layer_pattern_of_the_file_wins(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf", "gemma3")
    writer.add_sliding_window(512)
    writer.add_array("gemma3.attention.sliding_window_pattern", [True, False])
    finish(writer)
    assert _config(tmp_path / "m.gguf").config["layer_types"] == ["sliding_attention", "full_attention"]


def test_llama_with_experts_is_mixtral(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf")
    writer.add_expert_count(4)
    writer.add_expert_used_count(2)
    finish(writer)
    found = _config(tmp_path / "m.gguf")
    assert found.architecture == "MixtralForCausalLM"
    assert (found.config["num_local_experts"], found.config["num_experts_per_tok"]) == (4, 2)


def test_unknown_architecture_is_a_problem_not_a_guess(tmp_path: Path) -> None:
    found = _config(write_gguf(tmp_path / "m.gguf", "rwkv7"))
    assert found.architecture == "rwkv7"
    assert "no Hugging Face name" in found.problems[0]


def test_layers_that_differ_are_a_problem(tmp_path: Path) -> None:
    metadata = dict(read_gguf_model(write_gguf(tmp_path / "m.gguf")).metadata)
    metadata["llama.attention.head_count_kv"] = np.array([2, 4], np.int32)
    assert "differs between layers" in gguf_config(metadata, {}, "x").problems[0]
    metadata["llama.attention.head_count_kv"] = np.array([2, 2], np.int32)
    assert gguf_config(metadata, {}, "x").config["num_key_value_heads"] == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [("block_count", 0), ("block_count", 1 << 20), ("attention.head_count", None), ("embedding_length", 1.5), ("embedding_length", True),
     ("attention.head_count_kv", 0), ("context_length", 1 << 40)],
)  # fmt: skip
def test_impossible_sizes_are_refused(tmp_path: Path, key: str, value: object) -> None:
    metadata = dict(read_gguf_model(write_gguf(tmp_path / "m.gguf")).metadata)
    metadata[f"llama.{key}"] = value
    with pytest.raises(ArtifactError) as caught:
        gguf_config(metadata, {}, "x.gguf")
    assert caught.value.reason == "gguf_metadata"


def test_no_architecture_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"general\.architecture"):
        gguf_config({}, {}, "x.gguf")


def _split(path: Path, number: int, total: int, name: str) -> Path:
    file = path / f"m-{number:05d}-of-{total:05d}.gguf"
    writer = gguf_writer(file)
    writer.add_uint16("split.count", total)
    writer.add_uint16("split.no", number - 1)
    writer.add_tensor(name, np.zeros((50, 32), np.float32))
    finish(writer)
    return file


def test_split_files_are_read_together_and_missing_ones_named(tmp_path: Path) -> None:
    _split(tmp_path, 1, 2, "token_embd.weight")
    second = _split(tmp_path, 2, 2, "output.weight")
    model = read_gguf_model(second)
    assert model.tensors.keys() == {"token_embd.weight", "output.weight"}
    assert model.tensors["output.weight"].file == second
    (tmp_path / "m-00001-of-00002.gguf").rename(tmp_path / "other.gguf")
    with pytest.raises(ArtifactError, match=r"m-00001-of-00002\.gguf") as caught:
        read_gguf_model(second)
    assert caught.value.reason == "missing_shards"
    with pytest.raises(ArtifactError, match="one of 2 files"):
        read_gguf_model(tmp_path / "other.gguf")
