"""Sleep of an engine in process: memory that goes and comes back, answers that stay, and what is refused."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from headway.engine.llm import LLM
from headway.engine.operations import parked_weights
from headway.engine.sampling_params import SamplingParams
from headway.errors import AsleepError, CapacityError, ConfigError, RequestError
from headway.host.memory_budget import process_rss
from tests.engine.tiny_folder import complete_tiny_model

GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, logprobs=1)
PROMPT = [3 + i * i % 150 for i in range(40)]
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3, "num_attention_heads": 16, "num_key_value_heads": 4}
MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("sleep")).folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def sleeper(folder: Path, **arguments: Any) -> LLM:
    return LLM(folder, **({"max_model_len": 96, "num_gpu_blocks_override": 20, "dtype": "float32", "enable_sleep_mode": True} | arguments))


def answer(llm: LLM) -> tuple[list[int], float | None]:
    output = llm.generate(PROMPT, GREEDY, use_tqdm=False)[0].outputs[0]
    return output.token_ids, output.cumulative_logprob


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("implementation", ["vllm", "transformers"])
def test_answers_after_a_sleep_are_those_of_before(folder: Path, level: int, implementation: str) -> None:
    llm = sleeper(folder, model_impl=implementation)
    before = answer(llm)
    for _ in range(2):
        llm.sleep(level)
        with pytest.raises(AsleepError):
            answer(llm)
        llm.wake_up()
        assert answer(llm) == before


@pytest.mark.parametrize("level", [1, 2])
def test_resident_memory_falls_by_the_weights_and_the_cache(folder: Path, own_cache: Path, level: int) -> None:
    llm = sleeper(folder, load_format="dummy", hf_overrides=LARGE, kv_cache_memory_bytes=64 * MIB, num_gpu_blocks_override=None)
    before = answer(llm)
    for part in llm._engine.core.runner.kv.layers:  # commit all of it
        part.fill_(1.0)
    weights, cache, awake = llm._engine.memory.weights, llm._engine.memory.kv_cache, process_rss()
    assert weights > 150 * MIB
    llm.sleep(level)
    assert awake - process_rss() > 0.95 * (weights + cache)
    assert not [path for path in own_cache.rglob("*") if path.is_file()], "the file has no name"
    llm.wake_up(["kv_cache"])
    with pytest.raises(AsleepError):
        answer(llm)
    llm.wake_up(["weights"])
    assert answer(llm) == before


def test_what_cannot_be_is_refused_and_leaves_the_engine_awake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = sleeper(folder)
    before = answer(llm)
    with pytest.raises(RequestError, match="level must be 1"):
        llm.sleep(3)
    with pytest.raises(RequestError, match="tags must be among"):
        llm.wake_up(["engine"])
    full = namedtuple("full", "total used free")(0, 0, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(CapacityError, match="sleep level 1 writes"):
        llm.sleep(1)
    monkeypatch.undo()
    assert answer(llm) == before
    llm = sleeper(folder, enable_sleep_mode=False)
    with pytest.raises(ConfigError) as caught:
        llm.sleep(1)
    assert caught.value.reason == "sleep_mode_disabled"


def test_nothing_is_given_back_unless_all_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = sleeper(folder)
    before = answer(llm)

    class Full:
        def write(self, data: memoryview) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    with monkeypatch.context() as patched:
        patched.setattr(parked_weights.tempfile, "TemporaryFile", lambda dir: Full())
        with pytest.raises(OSError, match="No space"):
            llm.sleep(1)
    assert answer(llm) == before
