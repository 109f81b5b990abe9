"""Logits and greedy tokens equal to transformers, float32, on all architectures, in every shape of batch.

Sequences are 100 tokens: past the window (16) and past the original context of scaled rotary embeddings (32).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.kernels.reference import REFERENCE
from headway.models.causal_lm import CausalLM
from headway.models.decoder import Decoder
from headway.models.load import load_model
from tests.kernels.batches import Chunk, make_batch
from tests.models.runs import LENGTH, Session, difference, greedy, in_chunks, mixed_batches, tokens
from tests.models.tiny_models import CONFIGS, VARIANTS, TinyModel
from tests.models.tiny_sizes import SERVED

NAMES = list(CONFIGS)
ALL = [*CONFIGS, *VARIANTS]
Tiny = Callable[[str], TinyModel]


def card(model: TinyModel) -> ModelCard:
    return inspect(str(model.folder))


def load(model: TinyModel) -> CausalLM:
    return load_model(card(model), torch.float32, context_length=SERVED)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [LENGTH, 7, 1])
def test_logits_as_full_prefill_in_chunks_and_token_by_token(tiny: Tiny, name: str, size: int) -> None:
    model = tiny(name)
    text = tokens(0)
    expected = model.logits(text)
    assert expected.std() > 0.5  # flat logits would prove nothing
    assert difference(in_chunks(load(model), text, size), expected) <= 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_logits_with_the_reference_kernels(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    text = tokens(0)
    assert (
        difference(in_chunks(load_model(card(model), torch.float32, context_length=SERVED, kernels=REFERENCE), text, 50), model.logits(text))
        <= 1e-4
    )


@pytest.mark.parametrize("name", ALL)
def test_mixed_batches_of_prefill_chunks_and_decodes(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    assert mixed_batches(load(model), model.logits) <= 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_blocks_shared_by_a_common_prefix(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    prefix = tokens(6, 40)
    texts = [prefix + tokens(7, 30), prefix + tokens(8, 30)]
    session = Session(load(model), [70, 70])
    session.tables[1][:10] = session.tables[0][:10]
    # The second sequence reads blocks that the first writes in the same batch.
    first, second = session.step((0, texts[0], 70), (1, texts[1], 30))
    assert difference(first, model.logits(texts[0])) <= 1e-4
    assert difference(second, model.logits(texts[1])[40:]) <= 1e-4


@pytest.mark.parametrize("name", ALL)
def test_greedy_tokens(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    text = tokens(9, 50)
    assert greedy(load(model), text, 40, never=2) == model.greedy(text, 40)


def test_only_wanted_rows_come_back(tiny: Tiny) -> None:
    model = load(tiny("smollm"))
    session = Session(model, [20])
    batch = replace(make_batch([Chunk(tokens(0, 20), 20, session.tables[0])], 4), logits_rows=torch.tensor([19, 3]))
    hidden = model(batch, session.kv)
    assert hidden.shape == (2, 64)
    everything = Session(model, [20]).step((0, tokens(0, 20), 20))[0]
    assert difference(model.logits(hidden), everything[[19, 3]]) <= 1e-5


# What each architecture has and a wrong implementation would lack. Each must move the logits by more than parity allows.
WITHOUT_SCALING = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}
SWITCHED_OFF = {
    ("llama", "rope scaling"): {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    ("mistral", "rope scaling"): WITHOUT_SCALING,
    ("mistral", "window"): {"sliding_window": None},
    ("mistral", "window one too long"): {"sliding_window": 17},
    ("qwen2", "rope scaling"): WITHOUT_SCALING,
    ("qwen2", "window"): {"use_sliding_window": False},
    ("qwen3", "rope scaling"): WITHOUT_SCALING,
    ("qwen3", "window"): {"use_sliding_window": False},
    ("gemma3", "window"): {"sliding_window": 256},
    ("gemma3", "which layers have one"): {"layer_types": ["sliding_attention"] * 6},
    ("gemma3", "rope of its own for local layers"): {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 4.0},
                                                      "sliding_attention": {"rope_type": "default", "rope_theta": 1e6}}},
    ("gemma3", "rope scaling of global layers"): {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e6},
                                                   "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    ("gemma3", "softcap"): {"final_logit_softcapping": None},
    ("gemma3", "query scale"): {"query_pre_attn_scalar": 32},
    ("gemma2", "softcap of scores"): {"attn_logit_softcapping": None},
    ("gemma2", "softcap of logits"): {"final_logit_softcapping": None},
    ("gemma2", "which layers have a window"): {"layer_types": ["full_attention", "sliding_attention"] * 2},
    ("gemma2", "query scale"): {"query_pre_attn_scalar": 32},
    ("phi3", "window"): {"sliding_window": None},
    ("phi3", "attention factor and which factors"): {"original_max_position_embeddings": 64},
    ("phi3", "partial rotation"): {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    ("granite", "scale of embeddings"): {"embedding_multiplier": 1.0},
    ("granite", "scale of scores"): {"attention_multiplier": 0.25},
    ("granite", "scale of residuals"): {"residual_multiplier": 1.0},
    ("granite", "scale of logits"): {"logits_scaling": 1.0},
    ("olmo2", "theta"): {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    ("mixtral", "how many experts"): {"num_experts_per_tok": 1},
    ("mixtral", "window"): {"sliding_window": None},
    ("qwen3_moe", "weights that add up to 1"): {"norm_topk_prob": False},
    ("qwen3_moe", "how many experts"): {"num_experts_per_tok": 2},
    ("starcoder2", "window"): {"sliding_window": None},
    ("starcoder2_untied", "activation"): {"hidden_act": "silu"},
    ("stablelm", "partial rotation"): {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}},
    ("stablelm_parallel", "rope scaling of a part"): {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}},
    ("gpt_neox", "side by side"): {"use_parallel_residual": False},
    ("gpt_neox", "partial rotation"): {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
    ("gpt_neox_sequential", "one after the other"): {"use_parallel_residual": True},
    ("gpt2", "scale of attention"): {"scale_attn_weights": False},
    ("gpt2", "activation"): {"activation_function": "gelu"},
    ("falcon_7b", "activation"): {"activation": "gelu_new"},
    ("falcon_rw", "alibi"): {"alibi": False},
    ("falcon_180b_bias", "rope scaling"): {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
}  # fmt: skip


@pytest.mark.parametrize(("name", "feature"), list(SWITCHED_OFF))
def test_parity_breaks_without(tiny: Tiny, name: str, feature: str) -> None:
    model = tiny(name)
    known = card(model)
    broken = load_model(replace(known, config={**known.config, **SWITCHED_OFF[name, feature]}), torch.float32, context_length=SERVED)
    text = tokens(0)
    assert difference(in_chunks(broken, text, LENGTH), model.logits(text)) > 1e-3


@pytest.mark.parametrize("name", ["qwen3", "gemma3", "stablelm", "olmo2", "qwen3_moe"])
def test_parity_breaks_without_qk_norm(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    broken = load(model)
    assert isinstance(broken, Decoder)
    for layer in broken.layers:
        layer.attention.head_norm = None
    text = tokens(0)
    assert difference(in_chunks(broken, text, LENGTH), model.logits(text)) > 1e-3


@pytest.mark.parametrize("name", [*NAMES, "falcon_rw"])
def test_bfloat16_stays_near_float32(tiny: Tiny, name: str) -> None:
    model = tiny(name)
    text = tokens(0)
    expected = model.logits(text)
    rounded = in_chunks(load_model(card(model), torch.bfloat16, context_length=SERVED), text, 50)
    likeness = torch.nn.functional.cosine_similarity(rounded, expected, dim=-1)
    assert likeness.median() > 0.998  # not the mean: rounding sends a few tokens to another expert


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "olmo2"])
def test_wide_norms_round_once(tiny: Tiny, name: str) -> None:
    """Those of transformers multiply in float32 by a float32 weight. Rounding earlier moves a tenth of the numbers or more."""
    model = tiny(name)
    ours = load_model(card(model), torch.bfloat16, context_length=SERVED)
    assert isinstance(ours, Decoder)
    x = torch.randn(200, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
    assert (ours.norm(x) == model.oracle.model.norm(x)).float().mean() > 0.99
