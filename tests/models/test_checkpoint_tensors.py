from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from headway.models.checkpoint_tensors import IGNORABLE, check_tensors
from headway.models.load import load_model
from tests.models.tiny_models import TinyModel


@pytest.fixture
def card(tiny: Callable[[str], TinyModel]) -> ModelCard:
    return inspect(str(tiny("llama").folder))


def _with(card: ModelCard, *names: str) -> ModelCard:
    some = card.tensors["model.norm.weight"]
    return replace(card, tensors={**card.tensors, **{name: replace(some, name=name) for name in names}})


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_norm.weight",  # a norm that the architecture does not have
        "model.layers.3.mlp.up_proj.weight",  # a layer too many
        "model.layers.0.self_attn.q_proj.lora_A.weight",  # an adapter that was not merged
        "model.layers.0.self_attn.bias.weight",
    ],
)
def test_a_tensor_without_a_place_is_refused_by_name(card: ModelCard, name: str) -> None:
    with pytest.raises(ArtifactError, match="1 tensors for which LlamaForCausalLM has no place") as caught:
        load_model(_with(card, name), torch.float32)
    assert (caught.value.reason, caught.value.param) == ("unexpected_tensor", name)
    assert str(card.path) in caught.value.message


def test_what_no_text_decoder_needs_goes_by_and_is_logged(card: ModelCard, caplog: pytest.LogCaptureFixture) -> None:
    names = (
        "model.layers.0.self_attn.rotary_emb.inv_freq", "rope_freqs.weight", "rope_factors_long.weight", "h.0.attn.bias",
        "gpt_neox.layers.0.attention.masked_bias", "embeddings.position_ids", "mtp.fc.weight", "blk.9.nextn.eh_proj.weight",
        "model.layers.0.self_attn.k_scale", "score.weight", "vision_tower.x.weight", "model.visual.patch_embed.weight",
    )  # fmt: skip
    with caplog.at_level(logging.INFO):
        load_model(_with(card, *names), torch.float32)
    for _, why in IGNORABLE:
        assert why in caplog.text


@pytest.mark.parametrize("name", ["h.0.attn.c_attn.bias", "layers.0.attention.dense.bias", "model.layers.0.self_attn.q_proj.bias"])
def test_biases_are_not_taken_for_masks(name: str) -> None:
    assert not any(pattern.search(name) for pattern, _ in IGNORABLE)


def test_all_shapes_are_counted_and_the_first_is_shown(card: ModelCard) -> None:
    wanted = {name: tensor.shape for name, tensor in card.tensors.items()}
    wanted |= {"model.norm.weight": (65,), "lm_head.weight": (1, 1)}
    with pytest.raises(ArtifactError, match="2 tensors in all") as caught:
        check_tensors(card, wanted)
    assert caught.value.reason == "tensor_shape"
    assert "model.safetensors" in caught.value.message


def test_a_thousand_missing_tensors_make_a_short_message(card: ModelCard) -> None:
    wanted = {name: tensor.shape for name, tensor in card.tensors.items()} | {f"missing.{i}": (1,) for i in range(1000)}
    with pytest.raises(ArtifactError, match="lacks 1000 of the tensors") as caught:
        check_tensors(card, wanted)
    assert len(caught.value.message) < 1000
