"""Models that transformers runs, through the whole engine: greedy tokens equal those of transformers alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from headway import LLM, SamplingParams
from headway.errors import NotBuiltError
from tests.engine.tiny_folder import write_byte_tokenizer
from tests.models.fallback_models import fallback_model
from tests.models.tiny_models import TinyModel, tiny_model

COUNT = 20
BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 128, "kv_cache_memory_bytes": 64 << 20}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"enable_prefix_caching": False}, "chunks_of_7": {"max_num_batched_tokens": 7},
    "preempted": {"num_gpu_blocks_override": 12, "kv_cache_memory_bytes": None},
}  # fmt: skip
NAMES = ("gemma", "phi", "qwen2_moe", "cohere2", "olmo3", "nemotron", "glm4", "deepseek3")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fallback")


def complete(name: str, root: Path) -> TinyModel:
    model = fallback_model(name, root)
    write_byte_tokenizer(model.folder)
    return model


def prompts() -> list[list[int]]:
    return [[(length * 31 + 7 * k) % 150 + 5 for k in range(length)] for length in (3, 17, 40, 90)]


def answers(llm: LLM) -> list[list[int]]:
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    requests: list[Any] = [{"prompt_token_ids": p} for p in prompts()]
    return [o.outputs[0].token_ids for o in llm.generate(requests, params, use_tqdm=False)]


@pytest.mark.parametrize("name", NAMES)
def test_greedy_equals_transformers(name: str, root: Path) -> None:
    model = complete(name, root)
    want = [model.greedy(p, COUNT) for p in prompts()]
    for way in WAYS if name in ("gemma", "cohere2") else ("chunks_of_7",):
        llm = LLM(model.folder, **(BASE | WAYS[way]))
        assert answers(llm) == want, way
        assert answers(llm) == want, f"{way}, with what the prefix cache has"


def test_native_models_can_be_forced_either_way(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = tiny_model("llama", root)
    write_byte_tokenizer(model.folder)
    want = [model.greedy(p, COUNT) for p in prompts()]
    for implementation, lines in (("auto", 0), ("vllm", 0), ("transformers", 1)):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            assert answers(LLM(model.folder, model_impl=implementation, **BASE)) == want
        said = [record.getMessage() for record in caplog.records]
        assert "Resolved architecture: LlamaForCausalLM" in said
        assert sum("run by transformers" in line for line in said) == lines


def test_the_same_bits_are_promised_for_native_models_only(root: Path) -> None:
    with pytest.raises(NotBuiltError, match="native models only") as caught:
        LLM(complete("gemma", root).folder, batch_invariant=True, **BASE)
    assert caught.value.param == "batch_invariant"
