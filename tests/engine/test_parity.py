"""Greedy output of the whole engine against transformers, token for token, in float32, however the work is cut up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import LLM, SamplingParams
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.outputs import OutputKind, RequestOutput
from headway.telemetry.stats import StepStats
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import CONFIGS, VARIANTS, TinyModel

COUNT = 20
LENGTHS = (3, 17, 40, 90)  # below and above the window of 16 and the original rope limit of 32
BASE: dict[str, Any] = {"dtype": "float32", "max_model_len": 128, "kv_cache_memory_bytes": 64 << 20}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"enable_prefix_caching": False},
    "prefix_cache": {},
    "chunks_of_7": {"max_num_batched_tokens": 7},
    "preempted": {"num_gpu_blocks_override": 12, "kv_cache_memory_bytes": None},
    "blocks_of_3": {"block_size": 3, "max_num_seqs": 3},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parity")


@pytest.fixture(params=list(CONFIGS))
def tiny(request: pytest.FixtureRequest, root: Path) -> TinyModel:
    return complete_tiny_model(request.param, root)


def prompts() -> list[list[int]]:
    return [[(length * 31 + 7 * k) % 150 + 5 for k in range(length)] for length in LENGTHS]


def ids(outputs: list[RequestOutput]) -> list[list[int]]:
    return [o.outputs[0].token_ids for o in outputs]


@pytest.mark.parametrize("way", list(WAYS))
def test_greedy_equals_transformers(tiny: TinyModel, way: str) -> None:
    steps: list[StepStats] = []
    llm = LLM(str(tiny.folder), observers=Observers(on_step=steps.append), **(BASE | WAYS[way]))
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    requests: list[Any] = [{"prompt_token_ids": p} for p in prompts()]
    want = [tiny.greedy(p, COUNT) for p in prompts()]
    assert ids(llm.generate(requests, params, use_tqdm=False)) == want
    again = llm.generate(requests, params, use_tqdm=False)
    assert ids(again) == want
    if way == "preempted":
        assert sum(s.preemptions for s in steps) > 0
    if way == "plain":
        assert sum(s.prefix_hits for s in steps) == 0
    else:
        assert again[-1].num_cached_tokens > 0, "the second run did not use the prefix cache"


@pytest.mark.parametrize("name", list(VARIANTS))
def test_greedy_of_variants_equals_transformers(name: str, root: Path) -> None:
    tiny = complete_tiny_model(name, root)
    llm = LLM(str(tiny.folder), **(BASE | WAYS["chunks_of_7"]))
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    outputs = llm.generate([{"prompt_token_ids": p} for p in prompts()], params, use_tqdm=False)
    assert ids(outputs) == [tiny.greedy(p, COUNT) for p in prompts()]


def test_streamed_equals_transformers(tiny: TinyModel) -> None:
    async def run() -> list[list[int]]:
        engine = AsyncEngine(EngineConfig(model=str(tiny.folder), **BASE))
        engine.start()
        await engine.ready()
        params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT, output_kind=OutputKind.DELTA)

        async def one(number: int, prompt: list[int]) -> list[int]:
            await asyncio.sleep(0.002 * number)
            deltas = [o async for o in engine.generate(prompt, params, str(number))]
            assert len(deltas) == COUNT
            return [t for o in deltas for t in o.outputs[0].token_ids]

        try:
            return list(await asyncio.gather(*(one(i, p) for i, p in enumerate(prompts()))))
        finally:
            await engine.shutdown()

    assert asyncio.run(run()) == [tiny.greedy(p, COUNT) for p in prompts()]


def test_prompt_logprobs_equal_transformers(tiny: TinyModel) -> None:
    """Also across chunk borders and preemption, and although the prefix is cached."""
    llm = LLM(str(tiny.folder), **(BASE | {"max_num_batched_tokens": 7}))
    prompt = prompts()[2]
    params = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=2)
    want = tiny.logits(prompt).log_softmax(-1)
    for _ in range(2):
        (output,) = llm.generate({"prompt_token_ids": prompt}, params, use_tqdm=False)
        assert output.prompt_logprobs is not None
        assert output.prompt_logprobs[0] is None
        assert len(output.prompt_logprobs) == len(prompt)
        for i, row in enumerate(output.prompt_logprobs[1:], 1):
            assert row is not None
            assert next(iter(row)) == prompt[i]
            for token, entry in row.items():
                assert entry.logprob == pytest.approx(float(want[i - 1, token]), abs=1e-4)
            assert set(want[i - 1].topk(2).indices.tolist()) <= set(row)


def test_a_short_text_leaves_keys_that_a_long_one_can_use(root: Path) -> None:
    """Rotations that change with the length of the text (longrope, beyond 128 here) are those of the longest text for all."""
    model = complete_tiny_model("phi3", root)
    llm = LLM(str(model.folder), **(BASE | {"max_model_len": 200}))
    text = [(k * 31) % 150 + 5 for k in range(140)]
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    llm.generate({"prompt_token_ids": text[:48]}, params, use_tqdm=False)
    (output,) = llm.generate({"prompt_token_ids": text}, params, use_tqdm=False)
    assert output.num_cached_tokens == 48
    assert ids([output]) == [model.greedy(text, COUNT)]


def test_a_raising_forward_pass_spares_later_requests(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = complete_tiny_model("smollm", root)
    llm = LLM(str(model.folder), **BASE)
    runner = llm._engine.core.runner
    original: Callable[..., Any] = runner.model.logits

    def broken(hidden: Any) -> Any:
        raise FloatingPointError("injected")

    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    monkeypatch.setattr(runner.model, "logits", broken)
    (failed,) = llm.generate({"prompt_token_ids": prompts()[1]}, params, use_tqdm=False)
    assert failed.outputs[0].finish_reason == "error"
    monkeypatch.setattr(runner.model, "logits", original)
    (good,) = llm.generate({"prompt_token_ids": prompts()[1]}, params, use_tqdm=False)
    assert good.outputs[0].token_ids == model.greedy(prompts()[1], COUNT)


def test_a_nan_ends_its_own_request_and_leaves_no_trace_in_the_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = complete_tiny_model("smollm", root)
    llm = LLM(str(model.folder), **BASE)
    runner = llm._engine.core.runner
    core = llm._engine.core
    original = runner.model.logits

    def poisoned(hidden: Any) -> Any:
        logits = original(hidden)
        logits[0] = float("nan")
        runner.kv.layers[0][:, :, core.scheduler.running[0].table.blocks] = float("nan")
        return logits

    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    monkeypatch.setattr(runner.model, "logits", poisoned)
    (failed,) = llm.generate({"prompt_token_ids": prompts()[1]}, params, use_tqdm=False)
    assert failed.outputs[0].finish_reason == "error"
    assert "finite" in str(failed.error)
    monkeypatch.setattr(runner.model, "logits", original)
    outputs = llm.generate([{"prompt_token_ids": p} for p in prompts()], params, use_tqdm=False)
    assert ids(outputs) == [model.greedy(p, COUNT) for p in prompts()]
