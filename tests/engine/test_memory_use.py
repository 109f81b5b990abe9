"""What the engine counts in memory is what the arithmetic of plans says, for models of many kinds."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headway.artifacts.inspect import inspect
from headway.capacity.card_shape import card_shape
from headway.capacity.host_plan import host_plan
from headway.capacity.on_host import ROWS, STEP_TOKENS, auto_dtype_bytes
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.loading import load_engine
from headway.host.instruction_set import InstructionSet, instruction_set
from headway.host.memory_budget import MemoryBudget
from tests.engine.tiny_folder import write_byte_tokenizer
from tests.models.tiny_models import tiny_model

MEMORY = MemoryBudget(8 << 30, 8 << 30, 6 << 30, "the machine")
CACHE = 2 << 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", ["llama", "smollm", "qwen3", "gemma2", "phi3", "mixtral", "qwen3_moe", "olmo2"])
def test_counted_and_reckoned_agree(name: str, dtype: str, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tiny_model(name, root).folder
    write_byte_tokenizer(folder)
    with caplog.at_level(logging.INFO):
        loaded = load_engine(EngineConfig(str(folder), dtype=dtype, kv_cache_memory_bytes=CACHE, max_model_len=64))
    plan = host_plan(card_shape(loaded.card), MEMORY, dtype_bytes=4 if dtype == "float32" else 2, context=64, sequences=4)
    # Rotary tables and float32 norms are a few hundred bytes in a model of this size.
    assert plan.deployment.weights == pytest.approx(loaded.memory.weights, rel=0.02)
    assert loaded.capacity.weight_bytes == plan.deployment.weights
    assert loaded.capacity.bytes_per_token == plan.deployment.cache_bytes(64, 1) // (5 * 16)
    assert loaded.memory.kv_cache == loaded.capacity.kv_bytes <= CACHE
    assert loaded.memory.activations
    assert any(record.getMessage().startswith("Memory: weights") for record in caplog.records)


def test_plans_know_the_defaults_of_the_engine() -> None:
    config = EngineConfig("x")
    assert (config.max_num_batched_tokens, config.max_num_seqs) == (STEP_TOKENS, ROWS)


def test_plans_and_engine_take_the_same_dtype_by_themselves(root: Path) -> None:
    card = inspect(str(tiny_model("llama", root).folder))
    assert compute_dtype("auto", card).itemsize == auto_dtype_bytes(instruction_set())
    assert auto_dtype_bytes(InstructionSet("old", frozenset({"avx2", "fma"}))) == 4
    assert auto_dtype_bytes(InstructionSet("arm", frozenset({"asimd", "bf16"}))) == 2


def test_the_plan_holds_as_many_sequences_as_the_engine_then_does(root: Path) -> None:
    folder = tiny_model("llama", root).folder
    write_byte_tokenizer(folder)
    plan = host_plan(card_shape(inspect(str(folder))), MEMORY, dtype_bytes=4, context=64, sequences=5)
    loaded = load_engine(EngineConfig(str(folder), dtype="float32", kv_cache_memory_bytes=plan.cache, max_model_len=64))
    assert loaded.capacity.max_concurrency == 5.0
    assert loaded.memory.kv_cache == plan.cache
