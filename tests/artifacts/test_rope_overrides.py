"""Overrides of rotary settings reach the model whatever spelling the configuration and the override have."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from transformers import LlamaConfig

from headway.artifacts.config_overrides import override_config
from headway.errors import ConfigError
from headway.models.hf_rope import rope_spec
from tests.artifacts.plain_card import plain_card

PLAIN: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 256}
NEW = PLAIN | {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}}
NEW_LINEAR = PLAIN | {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "linear", "factor": 2.0}}
OLD = PLAIN | {"rope_theta": 500000.0, "rope_scaling": None}
OLD_LINEAR = PLAIN | {"rope_theta": 500000.0, "rope_scaling": {"type": "linear", "factor": 2.0}}
BY_LAYER = PLAIN | {"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}}


@pytest.mark.parametrize("config", [NEW, NEW_LINEAR, OLD, OLD_LINEAR], ids=["new", "new-linear", "old", "old-linear"])
@pytest.mark.parametrize(
    ("overrides", "theta", "scaling", "factor"),
    [
        ({"rope_theta": 1e6}, 1e6, None, None),
        ({"rope_parameters": {"rope_theta": 1e6}}, 1e6, None, None),
        ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 5e5, "linear", 8.0),
        ({"rope_scaling": {"type": "linear", "factor": 8.0}, "rope_theta": 1e6}, 1e6, "linear", 8.0),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}}, 1e6, "yarn", 4.0),
        ({"rope_scaling": None}, 5e5, "default", 1.0),
        ({"rope_parameters": None}, 5e5, "default", 1.0),
    ],
)
def test_every_spelling_of_an_override_reaches_every_spelling_of_a_config(
    config: dict[str, Any], overrides: dict[str, Any], theta: float, scaling: str | None, factor: float | None
) -> None:
    new, _ = override_config(plain_card(config), overrides)
    found, before = rope_spec(new.config, 16, 256), rope_spec(config, 16, 256)
    assert (found.theta, found.scaling, found.factor) == (theta, scaling or before.scaling, factor or before.factor)
    theirs = LlamaConfig(**deepcopy(dict(new.config))).rope_parameters  # what the fallback makes of it
    assert (theirs["rope_theta"], theirs["rope_type"]) == (theta, found.scaling)


def test_the_settings_of_the_text_part_are_respelled_as_well() -> None:
    new, _ = override_config(plain_card({"text_config": NEW}), {"text_config": {"rope_theta": 7.0}})
    assert new.config["text_config"]["rope_parameters"]["rope_theta"] == 7.0


def test_settings_by_kind_of_layer_are_changed_in_their_place() -> None:
    new, _ = override_config(plain_card(BY_LAYER), {"rope_parameters": {"full_attention": {"rope_theta": 5e6}}})
    assert new.config["rope_parameters"] == {"full_attention": {"rope_theta": 5e6}, "sliding_attention": {"rope_theta": 1e4}}


@pytest.mark.parametrize(
    ("config", "overrides", "says"),
    [
        (NEW, {"rope_parameters": {"factor": 8.0}}, "factor has no effect"),
        (OLD, {"rope_scaling": {"factor": 8.0}}, "factor has no effect"),
        (NEW, {"rope_parameters": {"rope_type": "yarn"}}, "yarn without a factor has no effect"),
        (BY_LAYER, {"rope_theta": 1e6}, r"each kind of layer \(full_attention, sliding_attention\)"),
        (NEW, {"rope_parameters": "yarn"}, "like the value it replaces"),
    ],
)
def test_what_would_have_no_effect_is_refused(config: dict[str, Any], overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        override_config(plain_card(config), overrides)
    assert caught.value.reason == "hf_overrides_invalid"
