"""Settings that no well-known model has but that transformers runs, so others will have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from headway.models.load import load_model
from headway.models.registry import architecture
from tests.models.published_configs import PUBLISHED
from tests.models.published_model import make_published_model
from tests.models.runs import in_chunks

TEXT = torch.randint(4, 156, (100,), generator=torch.Generator().manual_seed(0)).tolist()
_LEFT_OUT: Final = object()
_YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}

# Name of a published model, what is changed in its config.
ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "a head smaller than hidden / heads": ("llama-3-8b", {"head_dim": 8}),
    "no key heads named": ("llama-3-8b", {"num_key_value_heads": _LEFT_OUT}),
    "theta inside and outside": ("llama-3-8b", {"rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5}}),
    "scaling beside parameters": (
        "llama-3-8b",
        {"rope_theta": _LEFT_OUT, "rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    ),
    "two types of scaling": ("llama-3-8b", {"rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2.0}}),
    "yarn with mscale": ("llama-3-8b", {"rope_scaling": {**_YARN, "mscale": 0.7, "mscale_all_dim": 0.5}}),
    "yarn with mscale zero": ("llama-3-8b", {"rope_scaling": {**_YARN, "mscale": 0, "mscale_all_dim": 0}}),
    "yarn with fractions of dimensions": ("llama-3-8b", {"rope_scaling": {**_YARN, "truncate": False, "beta_fast": 16, "beta_slow": 2}}),
    "sizes that no vector divides": ("llama-3-8b", {"intermediate_size": 95, "vocab_size": 159, "hidden_size": 60, "head_dim": 18}),
    "dtype instead of torch_dtype": ("llama-3-8b", {"torch_dtype": _LEFT_OUT, "dtype": "float32"}),
    "a window of one": ("mistral-7b-v0.1", {"sliding_window": 1}),
    "a window smaller than a block": ("mistral-7b-v0.1", {"sliding_window": 3}),
    "a window as long as the text": ("mistral-7b-v0.1", {"sliding_window": 100}),
    "no window named": ("mistral-7b-v0.1", {"sliding_window": _LEFT_OUT}),
    "windows by name in qwen": (
        "qwen2.5-7b",
        {"use_sliding_window": True, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "a window for all of qwen's experts": ("qwen3-30b-a3b", {"use_sliding_window": True, "sliding_window": 16}),
    "every expert works": ("qwen3-30b-a3b", {"num_experts_per_tok": 16, "norm_topk_prob": False}),
    "one expert": ("mixtral-8x7b", {"num_local_experts": 1, "num_experts_per_tok": 1}),
    "a mixtral that names nothing": (
        "mixtral-8x7b", dict.fromkeys(("num_experts_per_tok", "num_local_experts", "sliding_window", "rope_theta"), _LEFT_OUT)
    ),
    "full layers by name in gemma 2": ("gemma-2-2b", {"layer_types": ["full_attention"] * 4}),
    "no softcaps": ("gemma-2-2b", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "a low softcap": ("gemma-2-2b", {"attn_logit_softcapping": 1.0, "final_logit_softcapping": 5.0}),
    "every other layer of gemma 3": ("gemma-3-1b", {"sliding_window_pattern": 2}),
    "gemma 3 that names no rotation": (
        "gemma-3-1b", dict.fromkeys(("rope_theta", "rope_local_base_freq", "rope_scaling", "sliding_window_pattern"), _LEFT_OUT)
    ),
    "an attention factor": ("phi-3.5-mini", {"rope_scaling": {**PUBLISHED["phi-3.5-mini"]["rope_scaling"], "attention_factor": 1.5}}),
    "key heads of another size": ("olmo-2-7b", {"head_dim": 32, "num_key_value_heads": 2, "attention_bias": True}),
    "a key head for each query head in the new decoder": ("falcon-40b", {"num_kv_heads": 6}),
    "alibi in the new decoder": ("falcon-40b", {"alibi": True}),
    "alibi beside the feed-forward": ("falcon-7b", {"alibi": True, "num_attention_heads": 3}),
    "falcon with one key head, one after the other": ("falcon-7b", {"parallel_attn": False}),
    "heads of odd size": ("gpt2", {"n_embd": 60, "n_head": 4}),
    "no scale of attention": ("gpt2", {"scale_attn_weights": False, "n_inner": 77}),
    "theta as others spell it": ("pythia-160m", {"rotary_emb_base": _LEFT_OUT, "rotary_pct": _LEFT_OUT, "rope_theta": 500.0, "partial_rotary_factor": 0.5}),
    "all of a head turns": ("pythia-160m", {"rotary_pct": 1.0}),
    "norms of heads, one after the other": ("stablelm-2-12b", {"use_parallel_residual": False, "use_qkv_bias": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", list(ODD))
def test_logits(case: str, tmp_path: Path) -> None:
    name, changes = ODD[case]
    config = {field: value for field, value in (PUBLISHED[name] | changes).items() if value is not _LEFT_OUT}
    model = make_published_model("odd", config, tmp_path)
    loaded = load_model(inspect(str(model.folder)), torch.float32, context_length=256, implementation="vllm")
    expected = model.logits(TEXT)
    assert (in_chunks(loaded, TEXT, 7) - expected).abs().max() <= 1e-4 * max(1.0, float(expected.std()))


IMPOSSIBLE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gemma-3-1b", "rope_scaling", {"rope_scaling": "linear"}),
    ("gemma-3-1b", "rope_parameters", {"rope_parameters": [1]}),
    ("gemma-3-1b", "full_attention", {"rope_parameters": {"full_attention": 7}}),
    ("gemma-3-1b", "head_dim", {"head_dim": 1 << 30}),
    ("qwen2.5-7b", "max_window_layers", {"use_sliding_window": True, "max_window_layers": "all"}),
    ("qwen2.5-7b", "max_window_layers", {"use_sliding_window": True, "max_window_layers": -1}),
    ("phi-4", "partial_rotary_factor", {"partial_rotary_factor": 1e308}),
    ("llama-3-8b", "head_dim", {"head_dim": 15}),
    ("llama-3-8b", "rope_scaling", {"rope_scaling": {**_YARN, "beta_fast": 1e308}}),
    ("llama-3-8b", "rope_scaling", {"rope_scaling": {**_YARN, "attention_factor": 1e308}}),
)


@pytest.mark.parametrize(("name", "field", "changes"), IMPOSSIBLE)
def test_what_cannot_be_computed_is_refused_by_the_name_of_the_field(name: str, field: str, changes: dict[str, Any]) -> None:
    config = PUBLISHED[name] | changes
    with pytest.raises(ArtifactError) as caught:
        architecture(config["architectures"][0]).configure(config, 256)
    assert (caught.value.reason, caught.value.param) == ("invalid_model_config", field)


@pytest.mark.parametrize("name", ["gemma-2-2b", "gemma-3-1b", "mistral-7b-v0.1", "ministral-8b", "phi-3-mini-4k", "starcoder2-3b"])
def test_a_window_that_is_null_is_none(name: str) -> None:
    config = PUBLISHED[name]
    declared = architecture(config["architectures"][0])
    assert declared.configure(config, 256).windows != {None}
    assert declared.configure({**config, "sliding_window": None}, 256).windows == {None}
