"""Damage at random, through `headway inspect` and up to the plan of loading: a card or one of our errors, never anything else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.cli.inspect import inspect_command
from headway.errors import HeadwayError
from headway.models.plan import plan_model
from tests.artifacts.model_files import LLAMA_CONFIG, finish, gguf_writer, write_folder, write_gguf
from tests.cases.tiny_model import save_tiny_model

QUICK, LONG = 80, 1500
JSON_FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "quantize_config.json", "model.safetensors.index.json")
CONFIG = {
    **LLAMA_CONFIG, "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64}, "text_config": None,
    "quantization_config": {"quant_method": "gptq", "bits": 4, "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
    "compression_config": None, "head_dim": 8, "sliding_window": 32, "layer_types": ["full_attention"] * 2, "auto_map": {}, "torch_dtype": "float32",
    "eos_token_id": [1, 2], "rope_parameters": None, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
}  # fmt: skip

numbers = st.one_of(st.integers(-3, 70), st.integers(-(1 << 70), 1 << 70), st.floats(), st.booleans(), st.none())
words = st.one_of(st.sampled_from(["", "float32", "yarn", "default", "gptq", "LlamaForCausalLM", "full_attention", "\ud800", "0"]), st.text(max_size=8))
values = st.recursive(
    st.one_of(numbers, words),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from([*CONFIG, "x"]), inner, max_size=4)),
    max_leaves=8,
)
changes = st.dictionaries(st.sampled_from([*CONFIG, "unknown"]), values, min_size=1, max_size=4)


def inspected(reference: Path) -> None:
    result = CliRunner().invoke(inspect_command, [str(reference), "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    fields = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert result.exit_code == (1 if "error" in fields else 0)
    text = CliRunner().invoke(inspect_command, [str(reference)])
    assert text.exception is None or isinstance(text.exception, SystemExit)


def mutated(content: bytes, data: st.DataObject, reach: int) -> bytes:
    """A few bytes replaced, removed or doubled near the start, and perhaps a cut."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, min(reach, max(len(damaged) - 1, 0))))
        damaged[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=4))
    return bytes(damaged[: len(damaged) - data.draw(st.sampled_from([0, 0, 0, 1, 9, 200]))])


def fuzz(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        limits = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=examples == QUICK)
        return limits(given(data=st.data())(test))

    return decorate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_folder(tmp_path_factory.mktemp("fuzz") / "m", shards=2, config=CONFIG)
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2], "temperature": 0.5}')
    (folder / "tokenizer_config.json").write_text('{"bos_token": {"content": "<s>"}, "chat_template": [{"name": "a", "template": "b"}]}')
    (folder / "quantize_config.json").write_text('{"bits": 4, "group_size": 128}')
    return folder


def damage_json(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(JSON_FILES))
    whole = (folder / name).read_bytes()
    try:
        (folder / name).write_bytes(mutated(whole, data, len(whole)))
        inspected(folder)
    finally:
        (folder / name).write_bytes(whole)


def change_config(folder: Path, data: st.DataObject) -> None:
    changed = CONFIG | data.draw(changes)
    try:
        (folder / "config.json").write_text(json.dumps(changed))
        inspected(folder)
    finally:
        (folder / "config.json").write_text(json.dumps(CONFIG))


def damage_safetensors(folder: Path, data: st.DataObject) -> None:
    path = folder / "model-00001-of-00002.safetensors"
    whole = path.read_bytes()
    try:
        path.write_bytes(mutated(whole, data, 400))
        inspected(folder)
    finally:
        path.write_bytes(whole)


def damage_gguf(folder: Path, data: st.DataObject) -> None:
    path = folder / "x.gguf"
    whole = write_gguf(path).read_bytes()
    path.write_bytes(mutated(whole, data, 1500))
    inspected(path)
    path.unlink()


KEYS = ("general.architecture", "general.alignment", "general.type", "general.license", "split.count", "tokenizer.ggml.tokens",
        "tokenizer.ggml.eos_token_id", "tokenizer.chat_template", "general.sampling.temp",
        *(f"llama.{name}" for name in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
          "attention.key_length", "context_length", "rope.freq_base", "rope.scaling.type", "rope.scaling.factor", "rope.dimension_count",
          "attention.sliding_window", "expert_count", "vocab_size", "attention.layer_norm_rms_epsilon")))  # fmt: skip
T = gguf.GGUFValueType
metadata_values = st.one_of(
    st.tuples(st.just(T.UINT32), st.integers(0, (1 << 32) - 1)), st.tuples(st.just(T.UINT32), st.integers(0, 70)),
    st.tuples(st.just(T.INT64), st.integers(-(1 << 62), 1 << 62)), st.tuples(st.just(T.FLOAT32), st.floats(width=32)),
    st.tuples(st.just(T.BOOL), st.booleans()), st.tuples(st.just(T.STRING), st.sampled_from(["", "llama", "yarn", "linear", "x" * 300])),
    st.tuples(st.just(T.ARRAY), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
    st.tuples(st.just(T.ARRAY), st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4)),
)  # fmt: skip


def change_gguf_metadata(folder: Path, data: st.DataObject) -> None:
    path = folder / "y.gguf"
    writer = gguf_writer(path)
    chosen = data.draw(st.dictionaries(st.sampled_from(KEYS), metadata_values, min_size=1, max_size=4))
    for key, (kind, value) in chosen.items():
        writer.kv_data[0][key] = gguf.GGUFValue(value, kind)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)
    inspected(path)
    path.unlink()


WAYS = (damage_json, change_config, damage_safetensors, damage_gguf, change_gguf_metadata)


@pytest.mark.parametrize("way", WAYS)
@fuzz(QUICK)
def test_inspect_survives(way: Callable[[Path, st.DataObject], None], folder: Path, data: st.DataObject) -> None:
    way(folder, data)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@fuzz(LONG)
def test_inspect_survives_much(way: Callable[[Path, st.DataObject], None], folder: Path, data: st.DataObject) -> None:
    way(folder, data)


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> ModelCard:
    folder = tmp_path_factory.mktemp("fuzz") / "tiny"
    save_tiny_model(folder)
    return inspect(str(folder))


def planned(card: ModelCard, changed: dict[str, Any]) -> None:
    with contextlib.suppress(HeadwayError):
        plan_model(replace(card, config={**card.config, **changed}), 64, "vllm")


@fuzz(QUICK)
def test_the_plan_of_a_model_survives_its_config(card: ModelCard, data: st.DataObject) -> None:
    planned(card, data.draw(changes))


@pytest.mark.long
@fuzz(LONG)
def test_the_plan_of_a_model_survives_its_config_for_long(card: ModelCard, data: st.DataObject) -> None:
    planned(card, data.draw(changes))
