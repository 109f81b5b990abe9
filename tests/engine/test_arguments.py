"""Keyword arguments of `LLM`: a value of the wrong kind is named, None means the default."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headway.engine.arguments import engine_config
from headway.engine.config import EngineConfig
from headway.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tokenizer", 5, "a text"),
        ("generation_config", {"temperature": 1}, "a text"),
        ("otlp_traces_endpoint", 5, "a text"),
        ("served_model_name", 5, "a text or a list of texts"),
        ("served_model_name", [1], "a text or a list of texts"),
        ("enable_prefix_caching", 2, "true or false"),
        ("batch_invariant", [], "true or false"),
        ("block_size", 16.0, "an integer"),
        ("max_model_len", True, "an integer"),
        ("gpu_memory_utilization", [0.5], "a number"),
        ("hf_overrides", dict, "a JSON object"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be {expected}") as caught:
        engine_config("x", {name: value})
    assert caught.value.param == name


def test_none_is_the_default() -> None:
    names = ("hf_overrides", "max_num_seqs", "tokenizer_mode", "seed", "served_model_name", "tensor_parallel_size", "quantization")
    assert engine_config("x", dict.fromkeys(names)) == EngineConfig("x")


def test_a_dtype_may_be_that_of_torch() -> None:
    assert engine_config("x", {"dtype": torch.float32}).dtype == "float32"
    with pytest.raises(ConfigError, match=r"dtype must be one of .*, got 'int8'"):
        engine_config("x", {"dtype": torch.int8})
