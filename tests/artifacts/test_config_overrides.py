"""Overriding config.json: merged object into object, everything derived follows, nothing unsafe gets through."""

from __future__ import annotations

from typing import Any

import pytest

from headway.artifacts.card import ModelCard
from headway.artifacts.config_overrides import override_config
from headway.artifacts.window_cap import without_window
from headway.errors import ConfigError
from tests.artifacts.plain_card import plain_card

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 256, "rope_theta": 1e4, "eos_token_id": 2,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}, "hidden_act": "silu", "sliding_window": None,
}  # fmt: skip


@pytest.fixture
def card() -> ModelCard:
    return plain_card(CONFIG)


def test_objects_are_merged_and_what_follows_from_them_follows(card: ModelCard) -> None:
    assert card.context_length == 256
    new, changes = override_config(card, {"rope_scaling": {"factor": 8.0}, "architectures": ["MistralForCausalLM"], "model_type": "mistral"})
    assert new.config["rope_scaling"] == {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
    assert (new.architecture, new.model_type, new.context_length) == ("MistralForCausalLM", "mistral", 512)
    assert changes[0] == "rope_scaling.factor: 4.0 -> 8.0"
    assert card.config["rope_scaling"]["factor"] == 4.0  # the card that was given stays as it is


def test_null_removes_numbers_mix_and_ids_may_be_lists(card: ModelCard) -> None:
    new, _ = override_config(card, {"rope_scaling": None, "rope_theta": 500000, "eos_token_id": [2, 3], "sliding_window": 16})
    assert new.context_length == 256
    assert new.config["eos_token_id"] == [2, 3]


def test_a_field_that_is_not_there_is_set_and_said(card: ModelCard) -> None:
    new, changes = override_config(card, {"max_position_embedings": 512, "num_key_value_heads": 2})
    assert new.config["max_position_embedings"] == 512
    assert "did you mean max_position_embeddings?" in changes[0]
    assert "did you mean" not in changes[1]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"auto_map": {"AutoModel": "x.Y"}}, "never run"),
        ({"quantization_config": {"quant_method": "awq"}}, "fact of the files"),
        ({"max_position_embeddings": "512"}, "like the value it replaces"),
        ({"max_position_embeddings": True}, "like the value it replaces"),
        ({"rope_theta": float("nan")}, "like the value it replaces"),
        ({"hidden_act": 5}, "like the value it replaces"),
        ({"rope_scaling": {"factor": "4"}}, r"rope_scaling\.factor"),
        ({"rope_scaling": [1]}, "like the value it replaces"),
        ({"x": list(range(20_000))}, "more than 10000 values"),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}, "deeper than 8"),
    ],
)
def test_what_is_refused(card: ModelCard, overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        override_config(card, overrides)
    assert (caught.value.reason, caught.value.param) == ("hf_overrides_invalid", "hf_overrides")


def test_without_a_window_the_context_is_the_window() -> None:
    assert without_window(plain_card(CONFIG | {"sliding_window": 16})).context_length == 16
    assert without_window(plain_card(CONFIG)).context_length == 256
    assert without_window(plain_card(CONFIG | {"sliding_window": 16, "use_sliding_window": False})).context_length == 256
    assert without_window(plain_card(CONFIG | {"sliding_window": 1000})).context_length == 256
