"""Greedy output of the engine on the real SmolLM2 in float32 against transformers, however the work is cut up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from headway import LLM, SamplingParams
from headway.artifacts.resolve import resolve
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.outputs import OutputKind
from headway.telemetry.stats import StepStats
from tests.models.gguf_oracle import gguf_oracle

pytestmark = pytest.mark.e2e
COUNT = 24
TEXTS = (
    "The capital of France is",
    "1, 2, 3, 4, 5,",
    "she sells sea shells by the sea shore, she sells sea shells",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "The quick brown fox jumps over the lazy dog. " * 6,
)
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"enable_prefix_caching": False},
    "cached_in_chunks_of_7": {"max_num_batched_tokens": 7},
    "preempted": {"num_gpu_blocks_override": 16},
}


@dataclass(frozen=True)
class Expected:
    reference: str
    prompts: list[list[int]]
    outputs: list[list[int]]


@pytest.fixture(scope="module")
def expected() -> Expected:
    path = resolve("smollm2-135m-instruct")
    oracle = gguf_oracle(path)
    tokenizer = LLM(str(path), max_model_len=64).get_tokenizer()
    prompts = [tokenizer(t)["input_ids"] for t in TEXTS]
    outputs = []
    with torch.no_grad():
        for prompt in prompts:
            made = oracle.generate(torch.tensor([prompt]), max_new_tokens=COUNT, min_new_tokens=COUNT, do_sample=False)
            outputs.append(made[0, len(prompt) :].tolist())
    return Expected(str(path), prompts, outputs)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("way", list(WAYS))
def test_greedy_equals_transformers(expected: Expected, way: str) -> None:
    steps: list[StepStats] = []
    llm = LLM(expected.reference, dtype="float32", max_model_len=192, observers=Observers(on_step=steps.append), **WAYS[way])
    params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT)
    for _ in range(2):
        outputs = llm.generate([{"prompt_token_ids": p} for p in expected.prompts], params, use_tqdm=False)
        assert [o.outputs[0].token_ids for o in outputs] == expected.outputs
    if way == "preempted":
        assert sum(s.preemptions for s in steps) > 0


@pytest.mark.timeout(400)
def test_streamed_equals_transformers(expected: Expected) -> None:
    """Arriving one after another, so that prefills join decodes that run."""

    async def run() -> list[list[int]]:
        engine = AsyncEngine(EngineConfig(model=expected.reference, dtype="float32", max_model_len=192))
        engine.start()
        await engine.ready()
        params = SamplingParams(temperature=0, max_tokens=COUNT, min_tokens=COUNT, output_kind=OutputKind.DELTA)

        async def one(number: int, prompt: list[int]) -> list[int]:
            await asyncio.sleep(0.05 * number)
            return [t async for o in engine.generate(prompt, params, str(number)) for t in o.outputs[0].token_ids]

        try:
            return list(await asyncio.gather(*(one(i, p) for i, p in enumerate(expected.prompts))))
        finally:
            await engine.shutdown()

    assert asyncio.run(run()) == expected.outputs
