"""KV offloading: answers of an engine whose pool is too small, with and without copies of what it gave up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.llm import LLM
from headway.engine.sampling_params import SamplingParams
from headway.errors import CapacityError, ConfigError
from headway.kernels.choice import engine_kernels
from headway.telemetry.metrics import EngineMetrics
from tests.engine.tiny_folder import complete_tiny_model

SMALL: dict[str, Any] = {"max_model_len": 96, "num_gpu_blocks_override": 9, "block_size": 16, "dtype": "float32"}
TALKS = [[3 + (7 * talk + i * i) % 150 for i in range(70)] for talk in range(6)]  # 5 blocks each with their answers, for a pool of 9
GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("offload")).folder


def two_rounds(llm: LLM) -> tuple[list[list[int]], list[int]]:
    """Every talk twice, one after the other; tokens of all answers, cached tokens of the second round."""
    outputs = [llm.generate(talk, GREEDY, use_tqdm=False)[0] for _ in range(2) for talk in TALKS]
    return [o.outputs[0].token_ids for o in outputs], [o.num_cached_tokens for o in outputs[len(TALKS) :]]


@pytest.mark.parametrize("kept", ["auto", "int8"])
def test_answers_are_the_same_and_nothing_is_computed_twice(folder: Path, tmp_path: Path, kept: str) -> None:
    if kept == "int8":

        assert engine_kernels(torch.float32).quantized_cache, "the compiled kernels read it"
    plain, found = two_rounds(LLM(folder, kv_cache_dtype=kept, **SMALL))
    assert found == [0] * len(TALKS), "the pool is too small to remember"
    metrics = EngineMetrics("tiny")
    llm = LLM(folder, kv_cache_dtype=kept, kv_offloading_size=0.01, observers=Observers(metrics.on_step), **SMALL)
    offloaded, found = two_rounds(llm)
    assert offloaded == plain
    assert found == [64] * len(TALKS), "all full blocks but the last"
    text = metrics.render().decode()
    counts = {line.split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if "external_prefix" in line and line[0] != "#"}
    assert counts["vllm:external_prefix_cache_hits_total"] <= counts["vllm:external_prefix_cache_queries_total"]
    assert counts["vllm:external_prefix_cache_hits_total"] >= 64 * (len(TALKS) - 1)
    assert 'headway:kv_offload_bytes_total{direction="in",model_name="tiny"}' in text
    in_file = LLM(folder, kv_cache_dtype=kept, kv_offloading_size=0.01, kv_offloading_path=str(tmp_path), **SMALL)
    assert two_rounds(in_file) == (plain, found)
    assert list(tmp_path.iterdir()) == []


def test_sequences_that_push_each_other_out_find_their_blocks_again(folder: Path) -> None:
    """All talks at once in a pool for two: preempted ones come back from the second tier, and answer the same."""
    llm = LLM(folder, **SMALL)
    alone = [llm.generate(talk, GREEDY, use_tqdm=False)[0].outputs[0].token_ids for talk in TALKS]
    together = LLM(folder, kv_offloading_size=0.01, **SMALL).generate(TALKS, GREEDY, use_tqdm=False)
    assert [o.outputs[0].token_ids for o in together] == alone


def test_a_reset_forgets_the_copies_only_when_told(folder: Path) -> None:
    llm = LLM(folder, kv_offloading_size=0.01, **SMALL)
    two_rounds(llm)
    assert llm.reset_prefix_cache()
    assert llm.generate(TALKS[0], GREEDY, use_tqdm=False)[0].num_cached_tokens == 64
    assert llm.reset_prefix_cache(reset_connector=True)
    assert llm.generate(TALKS[0], GREEDY, use_tqdm=False)[0].num_cached_tokens == 0


def test_what_cannot_be_is_refused_at_the_start(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="has no room for one block"):
        LLM(folder, kv_offloading_size=1e-9, **SMALL)
    with pytest.raises(CapacityError, match="are available"):
        LLM(folder, kv_offloading_size=1e6, **SMALL)
    with pytest.raises(CapacityError, match="of disk"):
        LLM(folder, kv_offloading_size=1e6, kv_offloading_path=str(tmp_path), **SMALL)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        LLM(folder, kv_offloading_size=0.01, kv_offloading_path=str(tmp_path / "file"), **SMALL)
    with pytest.raises(ConfigError, match="needs the prefix cache"):
        EngineConfig("tiny", kv_offloading_size=1.0, enable_prefix_caching=False)
    with pytest.raises(ConfigError, match="needs --kv-offloading-size"):
        EngineConfig("tiny", kv_offloading_path="/x")
